"""The worker's Kafka clients: they read snapshots in batches, write records, and commit the offsets."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.derive.commits import Commits
from services.derive.errors import KafkaFailedError, NoTopicError
from services.runtime.kafka.options import create_consumer, create_producer, log_error, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from confluent_kafka import Consumer, Message
    from confluent_kafka.admin import TopicMetadata

    from contracts.records.record import Record
    from services.derive.derive import OutputRecord

log = logging.getLogger(__name__)

NAME = "derive"
POLL_S = 0.2
LISTED_S = 1.0
ATTEMPTS = 30
LOOKS, AGAIN_S = 10, 0.3
"""The number of checks for a missing topic, and the pause between them."""
FRESH_S = 3.0
"""The age from which a batch is written only if the group still knows this member. With the next time it is less than
the session's timeout, after which another worker has the partitions."""
WRITTEN_MS = 5_000
"""The time after which the client drops an unsent record: a process that was frozen must not send it late."""
FLUSH_S = 0.2
START = {"auto.offset.reset": "earliest"}
SESSION_MS = 10_000
"""The time after which the group takes the partitions of a dead worker."""
MEMBER = {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": SESSION_MS}
UNSENT = {"_MSG_TIMED_OUT", "_TIMED_OUT"}
LOSES = {"_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_MAX_POLL_EXCEEDED"}
"""The transient errors: the client tries again."""


class AssignmentListener(Protocol):
    """Receives the changes of the worker's assignment."""

    def assigned(self, offsets: Mapping[int, int]) -> None:
        """Handle assigned partitions, with the offset at which each of them continues. It may take long."""
        ...

    def revoked(self, numbers: Collection[int]) -> None:
        """Handle revoked partitions."""
        ...


class Kafka(Protocol):
    """The topics that the worker reads and writes."""

    def read(self, wait_s: float = POLL_S) -> Sequence[Record]:
        """Return the next snapshots; none after a timeout. Raises KafkaFailedError."""
        ...

    def settle(self, records: Sequence[Record], outputs: Sequence[OutputRecord]) -> bool:
        """Write the derived records of these, wait until all in-sync replicas have them, and commit.

        Return False if they could not be written: `read` returns them again, unless another worker has them.
        Raises KafkaFailedError.
        """
        ...

    def write(self, outputs: Sequence[OutputRecord]) -> bool:
        """Write records that follow from settled snapshots, after the offsets of these are committed.

        Return False if they could not be written. Raises KafkaFailedError.
        """
        ...


class RealKafka:
    """A member of the group. While the broker is away it waits, until it stops."""

    def __init__(  # noqa: PLR0913, PLR0917  # its dependencies
        self,
        client: Mapping[str, str],
        group: str,
        topic: str,
        most: int,
        stopping: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer = create_consumer({**START, **client}, NAME, group, MEMBER, log)
        self._commits = Commits(self._consumer, stopping)
        self._producer = create_producer(client, NAME, {"linger.ms": 1, "message.timeout.ms": WRITTEN_MS}, log)
        self._topic = topic
        self._most = most
        self._stopping = stopping
        self._clock = clock
        self._read_at = clock()
        self._unsent = False
        self._failed: KafkaFailedError | None = None
        self._unsettled: list[Record] = []
        self._was_unsettled = False
        self._followed: AssignmentListener | None = None
        self._next_offsets: dict[int, int] = {}
        self._committed_at: float | None = None
        self._is_behind = False
        """Whether a commit has failed since the last successful one. It is repeated also if no snapshot comes."""

    def partitions(self, topics: Sequence[str], kafka: str) -> dict[str, int]:
        """Return how many each topic has; none if it is to stop. Raises NoTopicError, KafkaFailedError.

        A topic that was made just now is waited for: a broker may not know of it yet.
        """
        known = self._known()
        looks_left = LOOKS
        while (missing := [one for one in topics if not known.get(one)]) and not self._stopping():
            looks_left -= 1
            if not looks_left:
                raise NoTopicError(missing[0], kafka)
            time.sleep(AGAIN_S)
            known = self._known()
        return {} if self._stopping() else {topic: known[topic] for topic in topics}

    def _known(self) -> dict[str, int]:
        """Return how many partitions each topic has that a broker knows, none while it is made. Waits for a broker."""
        attempts_left = ATTEMPTS
        while not self._stopping():
            attempts_left -= 1
            try:
                listed: dict[str, TopicMetadata] = self._consumer.list_topics(timeout=LISTED_S).topics
            except KafkaException as error:
                if not attempts_left:
                    raise failed("no broker answers", error.args[0]) from error
            else:
                return {name: len(topic.partitions) for name, topic in listed.items()}
        return {}

    def join(self, followed: AssignmentListener | None = None) -> None:
        """Join the group."""
        self._followed = followed
        self._consumer.subscribe(
            [self._topic], on_assign=self._took_over, on_revoke=self._gave_up, on_lost=self._gave_up
        )

    def read(self, wait_s: float = POLL_S) -> Sequence[Record]:
        """See `Kafka.read`. It polls for each record: what follows a rebalance callback is of the new assignment."""
        self._read_at = self._clock()
        message = self._consumer.poll(wait_s)
        while message is not None:
            if _is_record(message):
                self._unsettled.append(record_of(message))
            message = self._consumer.poll(0) if len(self._unsettled) < self._most else None
        records, self._unsettled = self._unsettled, []
        return records

    def settle(self, records: Sequence[Record], outputs: Sequence[OutputRecord]) -> bool:
        """See `Kafka.settle`. It does not poll meanwhile: after max.poll.interval.ms it loses its partitions."""
        if not records:
            self._is_behind = self._is_behind and not self._commit(self._next_offsets)
            return True
        first = {one.partition: one.offset for one in reversed(records)}
        late = self._was_unsettled or self._clock() - self._read_at > FRESH_S
        if late and not self._commit(first):
            return self._read_again(records)
        if not self._written(outputs):
            return self._read_again(records) if self._unsent else False
        next_offsets = {one.partition: one.offset + 1 for one in records}
        self._next_offsets |= next_offsets
        now = self._clock()
        self._is_behind = not self._commit(next_offsets)
        self._committed_at = None if self._is_behind else now
        self._was_unsettled = False
        return True

    def write(self, outputs: Sequence[OutputRecord]) -> bool:
        """See `Kafka.write`."""
        now = self._clock()
        if self._committed_at is None or now - self._committed_at > FRESH_S:
            if not self._commit(self._next_offsets):
                return False
            self._committed_at, self._is_behind = now, False
        return self._written(outputs)

    def _written(self, outputs: Sequence[OutputRecord]) -> bool:
        """Return whether all in-sync replicas have these records; False also if the worker stops."""
        self._unsent = False
        for one in outputs:
            self._produce(one)
        while self._producer.flush(FLUSH_S):
            self._check()
            if self._stopping() and not self._unsent:
                return False
        self._check()
        return not self._unsent

    def close(self) -> None:
        """Leave the group; not while a commit hangs, for its broker is away."""
        if not self._commits.undone:
            self._consumer.close()

    def _gave_up(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Drop the records of revoked partitions: their next owner reads them."""
        gone = {one.partition for one in partitions}
        self._unsettled = [one for one in self._unsettled if one.partition not in gone]
        self._next_offsets = {number: offset for number, offset in self._next_offsets.items() if number not in gone}
        self._is_behind = self._is_behind and bool(self._next_offsets)
        if self._followed is not None:
            self._followed.revoked(gone)

    def _took_over(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Find the committed offsets of assigned partitions, and pass them to the listener."""
        if self._followed is None:
            return
        offsets: dict[int, int] | None = None
        while offsets is None and not self._stopping():
            try:
                found = self._consumer.committed(partitions, LISTED_S)
                offsets = {one.partition: max(one.offset, 0) for one in found}
            except KafkaException as error:
                log_error(log, NAME, error.args[0])
        if offsets:
            self._next_offsets |= offsets
            self._committed_at = None
            self._followed.assigned(offsets)

    def _read_again(self, records: Sequence[Record]) -> bool:
        """Return these again with the next read, without those of partitions that are lost until then."""
        self._unsettled, self._was_unsettled = list(records), True
        return False

    def _commit(self, offsets: Mapping[int, int]) -> bool:
        return self._commits.commit([TopicPartition(self._topic, number, offset) for number, offset in offsets.items()])

    def _produce(self, one: OutputRecord) -> None:
        while True:
            try:
                self._producer.produce(one.topic, one.value, one.key, one.partition, on_delivery=self._noted)
            except BufferError:
                self._producer.poll(FLUSH_S)
            except KafkaException as error:
                raise failed(f"a record could not be written to {one.topic}", error.args[0]) from error
            else:
                return

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            return
        if error.name() in UNSENT:
            self._unsent = True
        else:
            self._failed = failed(f"a record could not be written to {message.topic()}", error)

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.fatal() or not (error.retriable() or error.name() in LOSES):
        raise failed("the snapshots cannot be read", error)
    log_error(log, NAME, error)
    return False


def failed(what: str, error: KafkaError) -> KafkaFailedError:
    """Return Kafka's error as one of this part."""
    return KafkaFailedError(what, error.name(), error.str())
