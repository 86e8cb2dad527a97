"""Reads a topic as a member of a group: a consumer in its own thread, which the event loop calls."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition
from typing_extensions import override

from services.runtime.call_thread import CallThread
from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.errors import raise_errors
from services.runtime.kafka.interfaces import FencedGroupConsumer
from services.runtime.kafka.membership import NEVER, GroupMembership
from services.runtime.kafka.options import create_consumer, log_error, record_of
from services.runtime.kafka.proofs import REVOKED, Proofs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from confluent_kafka import Consumer
    from confluent_kafka.admin import TopicMetadata

    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import RebalanceListener, TopicSubscription
    from services.runtime.kafka.options import Options

log = logging.getLogger(__name__)

POLL_S = 0.1
LAG_S = 1.0
LISTED_S = 1.0
CLOSE_S = 3.0
MARGIN_S = 1.0
"""The time that a rebalance waits for the event loop beyond the drain timeout."""
NOT_LEFT = "the broker is down: the worker stops without leaving the group, whose session will time out"
FLOW = {
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 10,  # by default a full queue stops fetching for a second, much longer than it lasts
    "queued.max.messages.kbytes": 8192,  # pausing throws away what is queued
}


class KafkaGroupConsumer(FencedGroupConsumer):
    """A member of the group. All its calls and callbacks run in one thread."""

    def __init__(
        self, client: Options, name: str, subscription: TopicSubscription, clock: Callable[[], float] = time.monotonic
    ) -> None:
        options = {**FLOW, **client, **subscription.options}
        callbacks = {"on_commit": self._on_commit, "error_cb": self._on_error}
        self._consumer = create_consumer(options, name, subscription.group, callbacks, log)
        self._name = name
        self._topic = subscription.topic
        self._batch = subscription.batch
        self._check = subscription.check
        self._patience = subscription.drain.total_seconds() + MARGIN_S
        self._thread = CallThread("consumer")
        self._ours: set[int] = set()
        self._paused: set[int] = set()
        self._committed: dict[int, int] = {}
        self._membership = GroupMembership(clock)
        self._proofs = Proofs()

    @override
    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        self._listener = listener
        self._loop = loop
        self._consumer.subscribe(
            [self._topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    @override
    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        return await self._thread.call(lambda: self._fetch(positions, full, paused=paused))

    @override
    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        return await self._thread.call(lambda: self._seek(positions))

    @override
    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        return await self._thread.call(lambda: self._next_offsets(partitions))

    @override
    def proven_at(self, partition: int) -> float:
        return self._membership.proven_at if partition in self._ours else NEVER

    @override
    async def prove(self, partition: int, position: int) -> bool:
        return await self._proofs.wait((partition, position), self._request_proof)

    @override
    async def lag(self) -> int:
        return await self._thread.call(self._lag)

    @override
    def problem(self) -> str | None:
        return self._check.problem

    @override
    async def close(self) -> None:
        """Leave the group, or give up after some seconds: leaving takes long while the broker is down."""
        closing, has_left = self._thread.call(self._close), False
        self._thread.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience + CLOSE_S):
                has_left = await closing
        if not has_left:
            log.warning(NOT_LEFT)

    def _close(self) -> bool:
        """Leave the group, unless the client would wait for the answer to a commit: the worker has waited before."""
        if self._membership.has_pending:
            return False
        self._consumer.close()
        return True

    def _fetch(self, positions: Mapping[int, int], full: Collection[int], *, paused: bool) -> list[Record]:
        self._check.check(self._listed)
        self._membership.poll()
        self._commit(positions)
        try:
            self._pause(self._ours if paused else self._ours.intersection(full))
            first = self._consumer.poll(0 if paused else POLL_S)
            messages = [] if first is None else [first, *self._consumer.consume(self._batch, 0)]
        except KafkaException as error:  # fatal: a message may be lost between the two calls
            raise failed(error.args[0]) from error
        return [record_of(message) for message in messages if self._is_record(message)]

    def _seek(self, positions: Mapping[int, int]) -> Collection[int]:
        return {partition for partition, offset in positions.items() if self._has_sought(partition, offset)}

    def _has_sought(self, partition: int, offset: int) -> bool:
        if partition not in self._ours:
            return False
        try:
            self._consumer.seek(TopicPartition(self._topic, partition, offset or OFFSET_BEGINNING))
        except KafkaException as error:
            self._on_error(error.args[0])
            return False
        self._committed.pop(partition, None)  # a position before it is to be committed too
        return True

    def _next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        try:
            positions = self._consumer.position(self._partitions(self._ours.intersection(partitions)))
            return {position.partition: max(0, self._next_offset(position)) for position in positions}
        except KafkaException as error:
            self._on_error(error.args[0])
            return {}

    def _listed(self) -> Collection[str] | None:
        """The topics with partitions; None while no broker answers."""
        try:
            topics: dict[str, TopicMetadata] = self._consumer.list_topics(timeout=LISTED_S).topics
        except KafkaException:
            return None
        return {name for name, topic in topics.items() if topic.partitions}

    def _commit(self, positions: Mapping[int, int]) -> None:
        if news := {p: at for p, at in positions.items() if p in self._ours and self._committed.get(p) != at}:
            self._begin_commit(news)

    def _begin_commit(self, positions: Mapping[int, int]) -> None:
        self._membership.begin_commit(positions)
        try:
            self._consumer.commit(offsets=self._offsets(positions), asynchronous=True)
        except KafkaException as error:
            self._end_commit(positions, error.args[0])

    def _end_commit(self, positions: Mapping[int, int], error: KafkaError | None) -> None:
        """Note the answer to a commit. A refused one is repeated with the next positions."""
        self._membership.end_commit(positions, accepted=error is None)
        if error is not None:
            self._on_error(error)
        if len(positions) == 1:
            (place,) = positions.items()
            self._proofs.answer(place, None if error is None else error.str())

    def _request_proof(self, place: tuple[int, int], proof: asyncio.Future[bool]) -> asyncio.Future[None]:
        return self._thread.call(lambda: self._prove(place, proof))

    def _prove(self, place: tuple[int, int], proof: asyncio.Future[bool]) -> None:
        partition, position = place
        self._proofs.add(place, proof)
        if partition not in self._ours:
            self._proofs.answer(place, REVOKED)
        elif not self._membership.is_pending({partition: position}):
            self._begin_commit({partition: position})

    def _pause(self, wanted: set[int]) -> None:
        if wanted == self._paused:
            return
        self._consumer.pause(self._partitions(wanted - self._paused))
        self._consumer.resume(self._partitions(self._paused - wanted))
        self._paused = set(wanted)

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.fatal():
            raise failed(error)
        self._on_error(error)
        return False

    def _on_error(self, error: KafkaError) -> None:
        log_error(log, self._name, error)
        self._loop.call_soon_threadsafe(self._listener.on_error)

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        refused = error or next((commit.error for commit in partitions if commit.error is not None), None)
        if error is None:
            confirmed = {commit.partition: commit.offset for commit in partitions if commit.error is None}
            self._committed.update(confirmed)
            self._loop.call_soon_threadsafe(self._listener.on_committed, confirmed)
        positions = {commit.partition: commit.offset for commit in partitions}
        self._end_commit(positions or self._membership.oldest, refused)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        new = [assigned.partition for assigned in partitions]
        self._ours.update(new)
        self._loop.call_soon_threadsafe(self._listener.on_assigned, new)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Delay the rebalance until the requests are drained, so that the next owner need not repeat them."""
        gone = [revoked.partition for revoked in partitions]
        released = asyncio.run_coroutine_threadsafe(self._revoked(gone), self._loop)
        try:
            positions = released.result(self._patience)
            if news := {p: at for p, at in positions.items() if self._committed.get(p) != at}:
                consumer.commit(offsets=self._offsets(news), asynchronous=False)
        except (KafkaException, TimeoutError) as error:
            log.warning("requests will be repeated", extra={"facts": {"partitions": gone, "detail": str(error)}})
        self._forget(gone)

    async def _revoked(self, gone: list[int]) -> dict[int, int]:
        with self._proofs.refused(gone):
            return await self._listener.on_revoked(gone)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        gone = [lost.partition for lost in partitions]
        self._loop.call_soon_threadsafe(self._listener.on_lost, gone)
        self._forget(gone)

    def _forget(self, gone: list[int]) -> None:
        self._ours.difference_update(gone)
        self._pause(self._paused.difference(gone))  # the client keeps a pause beyond the assignment
        for partition in gone:
            self._committed.pop(partition, None)
        self._proofs.forget(gone)

    def _lag(self) -> int:
        try:
            positions = self._consumer.position(self._partitions(self._ours))
            return sum(self._behind(position) for position in positions)
        except KafkaException as error:
            self._on_error(error.args[0])
            return 0

    def _behind(self, position: TopicPartition) -> int:
        """The distance from the position to the end."""
        start, end = self._consumer.get_watermark_offsets(position, cached=True) or (0, 0)
        return max(0, end - max(self._next_offset(position), start))

    def _next_offset(self, position: TopicPartition) -> int:
        """The position; before the first read, the committed offset, negative without one. Raises KafkaException."""
        if position.offset >= 0:
            return position.offset
        (committed,) = self._consumer.committed([position], LAG_S)
        raise_errors([committed])
        return committed.offset

    def _partitions(self, numbers: set[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, number) for number in sorted(numbers)]

    def _offsets(self, positions: Mapping[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition, offset) for partition, offset in positions.items()]


def failed(error: KafkaError) -> ConsumerFailedError:
    """Convert a Kafka error."""
    return ConsumerFailedError(error.name(), error.str())
