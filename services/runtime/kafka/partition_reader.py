"""Reads assigned partitions in batches: small ones while it keeps up, large ones while it catches up."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from typing_extensions import override

from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.assignment_interfaces import PartitionReader
from services.runtime.kafka.consumer_thread import ConsumerThread
from services.runtime.kafka.options import log_error, record_of
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from confluent_kafka import Message

    from contracts.records.record import Record
    from services.runtime.kafka.options import Options

log = logging.getLogger(__name__)

OPTIONS = {
    "auto.offset.reset": "error",  # the reader of the records decides
    "enable.partition.eof": True,  # reports an end that has no record: compaction or a transaction removed the last
    "fetch.wait.max.ms": 50,  # a new assignment may wait this long for the response to the fetch before it
    "fetch.queue.backoff.ms": 10,  # by default a full queue stops fetching for a second
    "queued.max.messages.kbytes": 32 * 1024,
}
POLL_S = 0.05
END_S = 5.0
SMALL_BATCH = 100
"""Written in about a millisecond."""
LARGE_BATCH = 10_000
LINGER_S = 0.003
"""The wait for more records when they arrive close together: one transaction for each record would cost more."""
CONSUME_SIZE = 500
"""The client creates so many message objects while it holds the interpreter's lock."""


class KafkaPartitionReader(PartitionReader):
    """A consumer with a thread of its own, which commits nothing."""

    def __init__(self, client: Options, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._thread = ConsumerThread(client, name, f"stateloop-{name}", OPTIONS)
        self._consumer = self._thread.consumer
        self._name = name
        self._clock = clock
        self._last_end = clock()
        self._limit = SMALL_BATCH
        self._ended: dict[Partition, int] = {}
        self._lost: dict[Partition, int] = {}

    @property
    @override
    def is_stopping(self) -> bool:
        return self._thread.stopping

    @override
    async def run(self, work: Callable[[], None]) -> None:
        await self._thread.run(lambda _: work())

    @override
    def add(self, partition: Partition, position: int | None) -> None:
        self._consumer.incremental_assign([TopicPartition(*partition, _offset(position))])

    @override
    def remove(self, partition: Partition) -> None:
        self._consumer.incremental_unassign([TopicPartition(*partition)])

    @override
    def replace(self, positions: Mapping[Partition, int | None]) -> None:
        self._consumer.assign([TopicPartition(*one, _offset(position)) for one, position in positions.items()])

    @override
    def known_end(self, partition: Partition) -> int | None:
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
        return end if end >= 0 else None

    @override
    def read(self, *, wait: bool) -> Iterator[Sequence[Record]]:
        """Read a batch: after a full one the limit of the next doubles."""
        self._ended, self._lost = {}, {}
        first = self._consumer.poll(POLL_S if wait else 0)
        if first is None:
            self._limit = SMALL_BATCH
            return
        began, count = self._clock(), 1
        yield self._records([first])
        wait_s = LINGER_S if began - self._last_end < LINGER_S else 0
        while count < self._limit:
            more = self._consumer.consume(min(CONSUME_SIZE, self._limit - count), wait_s)
            if not more:
                break
            count += len(more)
            wait_s = 0
            yield self._records(more)
        self._last_end = self._clock()
        self._limit = min(LARGE_BATCH, 2 * self._limit) if count >= self._limit else SMALL_BATCH

    @override
    def ended(self) -> Mapping[Partition, int]:
        return self._ended

    @override
    def lost(self) -> Mapping[Partition, int]:
        return self._lost

    def _records(self, messages: Sequence[Message]) -> Sequence[Record]:
        records = [record_of(message) for message in messages if message.error() is None]
        if len(records) < len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    self._note(Partition(message.topic() or "", message.partition() or 0), message.offset(), error)
        return records

    def _note(self, partition: Partition, offset: int | None, error: KafkaError) -> None:
        """Note what the client returns in place of a record."""
        if error.fatal():
            raise ConsumerFailedError(error.name(), error.str())
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # a public name
            self._ended[partition] = offset or 0
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001  # a public name
            self._lost[partition] = self._end(partition)
        else:
            log_error(log, self._name, error)

    def _end(self, partition: Partition) -> int:
        """Request the end of a partition. Raises KafkaException, after which the work is called again."""
        bounds = self._consumer.get_watermark_offsets(TopicPartition(*partition), END_S)
        if bounds is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # a public name
        return bounds[1]


def _offset(position: int | None) -> int:
    return OFFSET_BEGINNING if position is None else position
