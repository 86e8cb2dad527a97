"""Reads snapshots a second time: those of which the worker kept the offset only."""

from __future__ import annotations

import asyncio
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.enrichment.source import failed, record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from services.enrichment.source import Record

log = logging.getLogger(__name__)

POLL_S = 0.5
MOST = 1000
NEAR = 10_000
"""So many offsets are rather read past than sought beyond, which throws away what was fetched ahead."""
ALONE = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 50,  # another partition is read only when the last fetch has ended
    "queued.max.messages.kbytes": 2048,
}
END = sys.maxsize


class Rereader(Protocol):
    """Where a worker reads again."""

    async def reread(self, partition: int, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> list[Record]:
        """The records at these offsets, which ascend; without those that the topic keeps no more.

        Waits for as long as the broker is away, or the partition ends before them; gives what it has when they are
        not wanted any more. Raises ConsumerFailedError.
        """
        ...


class KafkaRereader:
    """A consumer beside the group's, which belongs to no group and commits nothing. It begins with the first use."""

    def __init__(self, client: Mapping[str, str], *, topic: str, group: str) -> None:
        self._config = {**ALONE, **client, "group.id": group}  # its name only: who may read by it may do so here
        self._topic = topic
        self._consumer: Consumer | None = None
        self._thread = ThreadPoolExecutor(1, "rereader")
        self._at = (-1, END)
        """The partition that is read, and its next offset."""
        self._ahead: list[Record] = []
        """What came from beyond the last offset that was asked for."""

    async def reread(self, partition: int, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> list[Record]:
        """See `Rereader.reread`."""
        loop, wanted, at, last = asyncio.get_running_loop(), frozenset(offsets), offsets[0], offsets[-1]
        found: list[Record] = []
        while at <= last and is_wanted():
            records, at = await loop.run_in_executor(self._thread, self._fetch, partition, at, last)
            found += [one for one in records if one.offset in wanted]
        return found

    async def close(self) -> None:
        """End it, when what it does has ended."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _fetch(self, partition: int, at: int, last: int) -> tuple[list[Record], int]:
        """What comes from one offset to another, at most a while, and where it goes on."""
        consumer = self._consumer = self._consumer or Consumer(self._config, logger=log)
        if not (self._at[0] == partition and self._at[1] <= at <= self._at[1] + NEAR):
            consumer.assign([TopicPartition(self._topic, partition, at)])
            self._at, self._ahead = (partition, at), []
        records, ended = (self._ahead, False) if self._ahead else _read(consumer, self._at[1], last)
        taken = [one for one in records if one.offset <= last]
        self._ahead = records[len(taken) :]
        if self._ahead:
            self._at = partition, last + 1
        elif taken:
            self._at = partition, taken[-1].offset + 1
        if ended:
            consumer.unassign()  # or it would ask for more all the time
            self._at = partition, END
        return taken, self._at[1]

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


def _read(consumer: Consumer, at: int, last: int) -> tuple[list[Record], bool]:
    """What there is, hardly more than from one offset to another, and whether the partition ends after them."""
    try:
        first = consumer.poll(POLL_S)
        messages = [first, *consumer.consume(min(last - at, MOST), 0)] if first else []
    except KafkaException as error:
        raise failed(error.args[0]) from error
    ends = [_ends(message, last) for message in messages]
    return [record(message) for message in messages if message.error() is None], any(ends)


def _ends(message: Message, last: int) -> bool:
    """Whether it tells that the partition ends after an offset that was there once.

    An earlier end passes: a new leader does not know yet how far it may be read. Raises ConsumerFailedError for an
    error that does not pass by itself.
    """
    error = message.error()
    if error is None:
        return False
    if error.fatal():
        raise failed(error)
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  # its name in the library
        log.warning("kafka", extra={"facts": {"code": error.name(), "detail": error.str()}})
        return False
    return (message.offset() or 0) > last
