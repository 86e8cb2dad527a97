"""Reads deferred snapshots again, of which the worker has only the offsets."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.options import create_consumer, log_error, record_of
from services.runtime.source import failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import Consumer

    from contracts.records.record import Record

log = logging.getLogger(__name__)

NAME = "enrichment-rereader"
POLL_S = 0.5
MOST = 1000
NEAR = 10_000
"""Gaps of at most so many offsets are read and dropped, because a seek discards the prefetched records."""
REREAD = {
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 50,  # another partition is read only when the last fetch has ended
    "queued.max.messages.kbytes": 2048,
}
END = sys.maxsize
PATIENCE_S = 60.0
"""The time for which a partition may end before offsets that were read once. A new leader reports that for a moment,
a recreated topic for ever; then its deferred requests would block those of all other partitions."""


class Rereader(Protocol):
    """Reads records by their offsets."""

    async def reread(self, partition: int, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> list[Record]:
        """Return the records at these ascending offsets, without those that the topic no longer has.

        It waits while the broker is down, and returns early when `is_wanted` returns False. Raises ConsumerFailedError,
        also if the partition stays shorter than these offsets: its topic was recreated.
        """
        ...


class KafkaRereader:
    """A consumer that belongs to no group and commits nothing. The first use creates it."""

    def __init__(self, client: Mapping[str, str], *, topic: str, group: str, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._group = group  # for authorization only: the ACLs of the group apply
        self._topic = topic
        self._patience_s = patience_s
        self._consumer: Consumer | None = None
        self._thread = ThreadPoolExecutor(1, "rereader")
        self._at = (-1, END)
        """The assigned partition, and its next offset."""
        self._ahead: list[Record] = []
        """Records beyond the last requested offset."""
        self._short: float | None = None
        """The time since which the partition ends before the requested offsets; None if it does not."""

    async def reread(self, partition: int, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> list[Record]:
        """See `Rereader.reread`."""
        loop, wanted, at, last = asyncio.get_running_loop(), frozenset(offsets), offsets[0], offsets[-1]
        found: list[Record] = []
        self._short = None
        while at <= last and is_wanted():
            records, at = await loop.run_in_executor(self._thread, self._fetch, partition, at, last)
            found += [one for one in records if one.offset in wanted]
            if self._short is not None and time.monotonic() - self._short > self._patience_s:
                raise ConsumerFailedError("ENDS_EARLY", f"partition {partition} ends before {at}, which was read once")
        return found

    async def close(self) -> None:
        """Close the consumer after the current read."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _fetch(self, partition: int, at: int, last: int) -> tuple[list[Record], int]:
        """Read from one offset to another for a limited time; return the records and the next offset."""
        consumer = self._consumer = self._consumer or create_consumer(self._client, NAME, self._group, REREAD, log)
        if not (self._at[0] == partition and self._at[1] <= at <= self._at[1] + NEAR):
            consumer.assign([TopicPartition(self._topic, partition, at)])
            self._at, self._ahead = (partition, at), []
        records, end = (self._ahead, None) if self._ahead else _read(consumer, self._at[1], last)
        taken = [one for one in records if one.offset <= last]
        self._ahead = records[len(taken) :]
        if self._ahead:
            self._at = partition, last + 1
        elif taken:
            self._at = partition, taken[-1].offset + 1
        if end is not None and end > last:
            consumer.unassign()  # otherwise it would fetch all the time
            self._at = partition, END
        if end is not None or records:  # an end is reported once
            self._short = None if end is None else time.monotonic()
        return taken, self._at[1]

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


def _read(consumer: Consumer, at: int, last: int) -> tuple[list[Record], int | None]:
    """Read about the records between two offsets; also return the end of the partition if Kafka reported it."""
    try:
        first = consumer.poll(POLL_S)
        messages = [first, *consumer.consume(min(last - at, MOST), 0)] if first else []
    except KafkaException as error:
        raise failed(error.args[0]) from error
    end_offsets = [end for message in messages if (end := _end(message)) is not None]
    records = [record_of(message) for message in messages if message.error() is None]
    return records, end_offsets[-1] if end_offsets else None


def _end(message: Message) -> int | None:
    """The end of the partition, if the message reports it.

    An end before an offset that was read once may be transient: a new leader does not know the high watermark yet.
    Raises ConsumerFailedError for a fatal error.
    """
    error = message.error()
    if error is None:
        return None
    if error.fatal():
        raise failed(error)
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  # its name in the library
        log_error(log, NAME, error)
        return None
    return message.offset() or 0
