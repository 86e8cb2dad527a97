"""Reads partitions without a group: ranges of offsets, what follows them, and single records."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition
from typing_extensions import override

from services.runtime.errors import TopicReadError
from services.runtime.kafka.errors import read_error
from services.runtime.kafka.interfaces import BlockingTopicReader
from services.runtime.kafka.offsets import lookup
from services.runtime.kafka.options import create_consumer, log_error, record_of
from services.runtime.kafka.values import EARLIEST, LATEST, BoundedRange, Partition

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from confluent_kafka import Consumer, KafkaError, Message

    from contracts.records.record import Record
    from services.runtime.kafka.options import Options
    from services.runtime.kafka.values import OffsetRange

OPTIONS = {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50}
"""Another partition is read only when the last fetch has ended."""
BATCH = 1_000
POLL_S = 0.1
ANSWER_S = 10.0
NEAR = 10_000
"""The number of offsets up to which a gap is read and dropped, because a seek discards the prefetched records."""
PATIENCE_S = 60.0
"""The time for which a partition may end before an offset that it had. A new leader reports that for a moment, a
recreated topic for ever."""
ENDLESS = sys.maxsize


class BlockingKafkaReader(BlockingTopicReader):
    """A consumer that commits nothing; the first use creates it.

    With a `log`, it logs errors that may pass by themselves, such as a topic that is missing for a while, and goes
    on; without, it raises them. `group` is for authorization only: it joins none.
    """

    def __init__(  # noqa: PLR0913  # what differs between its users
        self,
        client: Options,
        name: str,
        *,
        group: str | None = None,
        options: Options | None = None,
        log: logging.Logger | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._client = client
        self._name = name
        self._group = group or f"stateloop-{name}"
        self._options = {**OPTIONS, **(options or {})}
        self._log = log
        self._patience_s = patience_s
        self._positions: dict[tuple[str, int], int] = {}
        """The next offset of each assigned partition."""
        self._ended: dict[tuple[str, int], float] = {}
        """The partitions of which no record has come since their end was reported, with the time of that."""
        self._paused: list[TopicPartition] = []
        self._ahead: list[Record] = []
        """Records that were received, and not returned yet."""
        self._single: Partition | None = None
        self._next_single = 0
        """The partition of which single records were read last, and the offset behind them."""
        self._opened: Consumer | None = None

    @override
    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        try:
            listed = self._consumer.list_topics(timeout=ANSWER_S).topics
        except KafkaException as error:
            raise read_error(", ".join(topics), error.args[0]) from error
        known = [topic for topic in topics if topic in listed]
        return [Partition(topic, number) for topic in known for number in sorted(listed[topic].partitions)]

    @override
    def bounds(self, partitions: Collection[Partition], within_s: float = ANSWER_S) -> Mapping[Partition, BoundedRange]:
        starts = self._offsets(partitions, EARLIEST, within_s)
        ends = self._offsets(partitions, LATEST, within_s)
        return {partition: BoundedRange(starts[partition], ends[partition]) for partition in partitions}

    @override
    def bounds_since(self, partitions: Collection[Partition], time: datetime) -> Mapping[Partition, BoundedRange]:
        starts, ends = self._offsets(partitions, int(time.timestamp() * 1000)), self._offsets(partitions, LATEST)
        starts = {partition: ends[partition] if start < 0 else start for partition, start in starts.items()}
        return {partition: BoundedRange(starts[partition], ends[partition]) for partition in partitions}

    @override
    def read(
        self, ranges: Mapping[Partition, OffsetRange], is_stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[Sequence[Record]]:
        self._assign({partition: offsets.start for partition, offsets in ranges.items()})
        ends: dict[tuple[str, int], int] = {
            partition: ENDLESS if offsets.end is None else offsets.end for partition, offsets in ranges.items()
        }
        left = self._unread(ends)
        while left and not is_stopping():
            records = self._batch(POLL_S)
            self._require_ends(left)
            left = self._unread(left)
            behind = [record for record in records if record.offset >= ends[record.topic, record.partition]]
            self._ahead += behind
            if behind:
                records = [record for record in records if record.offset < ends[record.topic, record.partition]]
            yield records

    @override
    def poll(self, within_s: float = 0.0) -> Sequence[Record]:
        self._resume()
        if self._ahead:
            records, self._ahead = self._ahead, []
            return records
        return self._batch(within_s)

    @override
    def at(
        self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool] = lambda: True
    ) -> Sequence[Record]:
        first, last, wanted = offsets[0], offsets[-1], frozenset(offsets)
        if self._single != partition or not first - NEAR <= self._next_single <= first:
            self._assign({partition: first})
            self._single = partition
        selected: list[Record] = []
        while is_wanted():
            records, self._ahead = self._ahead or self._batch(POLL_S), []
            selected += [record for record in records if record.offset in wanted]
            self._ahead = [record for record in records if record.offset > last]
            if self._ahead or self._positions[partition] > last:
                break
            self._require_ends({partition: last + 1})
        self._next_single = last + 1 if self._ahead else self._positions[partition]
        if partition in self._ended and not self._ahead:
            self.stop()  # otherwise the client would fetch all the time
        return selected

    @override
    def stop(self) -> None:
        self._assign({})

    @override
    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _consumer(self) -> Consumer:
        if self._opened is None:
            self._opened = create_consumer(self._client, self._name, self._group, self._options, self._log)
        return self._opened

    def _offsets(self, partitions: Collection[Partition], at: int, within_s: float = ANSWER_S) -> dict[Partition, int]:
        try:
            return lookup(self._consumer, dict.fromkeys(partitions, at), within_s)
        except KafkaException as error:
            raise read_error(_topics(partitions), error.args[0]) from error

    def _resume(self) -> None:
        """Fetch from all assigned partitions again. The client keeps a pause even beyond an assignment."""
        if self._paused:
            self._consumer.resume(self._paused)
        self._paused = []

    def _assign(self, positions: Mapping[Partition, int]) -> None:
        self._resume()
        self._positions = {(topic, number): offset for (topic, number), offset in positions.items()}
        self._ended, self._ahead, self._single = {}, [], None
        self._consumer.assign([TopicPartition(*partition, offset) for partition, offset in positions.items()])

    def _unread(self, ends: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        """Return the partitions whose ends are not reached, and fetch no more of the others."""
        reached = [TopicPartition(*partition) for partition, end in ends.items() if self._positions[partition] >= end]
        if reached:
            self._consumer.pause(reached)
            self._paused += reached
        return {partition: end for partition, end in ends.items() if self._positions[partition] < end}

    def _batch(self, wait_s: float) -> list[Record]:
        """Return the next records, and note the positions behind them."""
        try:
            first = self._consumer.poll(wait_s)
            messages = [] if first is None else [first, *self._consumer.consume(BATCH, 0)]
        except KafkaException as error:
            raise read_error(_topics(self._positions), error.args[0]) from error
        records = []
        for message in messages:
            partition = message.topic() or "", message.partition() or 0
            problem = message.error()
            if problem is not None and problem.name() != "_PARTITION_EOF":
                self._check(message, problem)
            elif partition not in self._positions:  # of an earlier assignment
                continue
            elif problem is not None:
                self._positions[partition] = message.offset() or 0
                self._ended[partition] = time.monotonic()
            else:
                record = record_of(message)
                records.append(record)
                self._positions[partition] = record.offset + 1
                self._ended.pop(partition, None)
        return records

    def _require_ends(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Require that no partition has ended before these offsets for too long. Raises TopicReadError."""
        for partition, since in self._ended.items():
            end, position = ends.get(partition, 0), self._positions[partition]
            if position < end < ENDLESS and time.monotonic() - since > self._patience_s:
                topic, number = partition
                detail = f"partition {number} ends before {position}, and had records up to {end}"
                raise TopicReadError(topic, "ENDS_EARLY", detail)

    def _check(self, message: Message, error: KafkaError) -> None:
        """Log an error that passes by itself. Raises TopicReadError for any other."""
        is_final = error.fatal() or "AUTHORIZATION" in error.name()
        if is_final or (self._log is None and not error.retriable()):
            raise read_error(message.topic() or _topics(self._positions), error)
        if self._log is not None:
            log_error(self._log, self._name, error)
        time.sleep(POLL_S)


def stored_records(client: Options, name: str, topic: str) -> Iterator[Record]:
    """Yield the records from the start of a topic to its present end, in order within a partition.

    `name` is the Kafka client's. Raises TopicReadError.
    """
    reader = BlockingKafkaReader(client, name)
    try:
        partitions = reader.partitions([topic])
        if not partitions:
            raise TopicReadError(topic, "UNKNOWN_TOPIC_OR_PART", "Broker: Unknown topic or partition")
        for records in reader.read(reader.bounds(partitions)):
            yield from records
    finally:
        reader.close()


def _topics(partitions: Collection[tuple[str, int]]) -> str:
    return ", ".join(sorted({topic for topic, _ in partitions}))
