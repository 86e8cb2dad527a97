"""A ingestion that runs on a real topic, and what a test does to that topic."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from services.query.ingest.kafka_ingestion import KafkaIngestion
from services.query.ingest.tombstones import UNLIMITED, TombstoneRetention
from services.query.store import StatePartition
from services.query.store.lmdb_store import LmdbStore
from services.runtime.kafka_clients import create_producer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from contracts.model.named_state import NamedState
    from services.query.ingest.ingestion import ReadProgress
    from services.query.store import Change

START = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_S = 30
BOTH = (0, 1)
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
    "max.compaction.lag.ms": "1000",
}
"""A topic that loses what it may as soon as it can."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait for it, for so long at most."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 (what changes it is in another thread)
            await asyncio.sleep(0.005)


def value(version: int, *, life: int = 0, **state: object) -> bytes:
    """A snapshot of a life that began so many minutes after the start."""
    times = {"first_seen": START + timedelta(minutes=life), "as_of": START + timedelta(minutes=life, seconds=version)}
    return orjson.dumps({**times, "version": version, "state": state})


class Topic:
    """A topic of two partitions, and its only writer."""

    def __init__(self, bootstrap: str, name: str, config: dict[str, str] | None = None, partitions: int = 2) -> None:
        self.name = name
        self.client = {"bootstrap.servers": bootstrap}
        self.admin = AdminClient({**self.client})
        self.admin.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(WAIT_S)
        self._producer = create_producer({**self.client, "linger.ms": 0}, "test")

    def write(self, *records: tuple[str | bytes, bytes | None], partition: int = 0) -> None:
        """Write these in their order; they are there when it returns."""
        for key, record in records:
            self._producer.produce(self.name, record, key, partition)
        assert self._producer.flush(WAIT_S) == 0


async def compacted(table: Topic, most: int) -> None:
    """Wait until the broker has left so many records of the first partition; each write may close a segment of it."""
    async with asyncio.timeout(3 * WAIT_S):
        while await asyncio.to_thread(_records, table) > most:
            table.write(("pad", b"{}"))


def _records(table: Topic) -> int:
    consumer = Consumer({**table.client, "group.id": "count", "enable.partition.eof": True})
    consumer.assign([TopicPartition(table.name, 0, OFFSET_BEGINNING)])
    count = 0
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        count += message.key() != b"pad"
    consumer.close()
    return count


class RecordingListener:
    """A listener that keeps what it was listener."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.restarts: list[StatePartition] = []
        self.running: Running | None = None
        self.at_restart: list[tuple[int | None, ReadProgress | None]] = []
        """The version of key `a` that could still be read then, and the progress that was listener."""

    def changed(self, changes: Sequence[Change]) -> None:
        self.changes += changes

    def restarted(self, part: StatePartition) -> None:
        self.restarts.append(part)
        if self.running is not None:
            self.at_restart.append((self.running.version("a"), self.running.ingestion.progress(part)))

    def versions(self, key: str) -> list[int | None]:
        """What was listener of a key."""
        return [one.entry and one.entry.version for one in self.changes if one.key == key]


class Running:
    """A store and the ingestion that keeps it."""

    def __init__(self, topic: Topic, state: NamedState, folder: Path, retention: TombstoneRetention) -> None:
        self.topic = topic
        self.listener = RecordingListener()
        self.name = state.name
        self.listener.running = self
        self.store = LmdbStore(folder, state, "boot")
        self.ingestion = KafkaIngestion(
            topic.client, {state.name: state}, {state.name: self.store}, self.listener, retention
        )

    def partition(self, partition: int) -> StatePartition:
        return StatePartition(self.name, partition)

    async def caught_up(self, *partitions: int) -> None:
        """Wait until all that is on these partitions now can be read."""
        parts = [self.partition(one) for one in partitions or BOTH]
        ends = await self.ingestion.end_offsets(parts)
        assert len(ends) == len(parts)
        await until(lambda: all(self.reached(part, end) for part, end in ends.items()))

    def reached(self, part: StatePartition, end: int) -> bool:
        progress = self.ingestion.progress(part)
        return progress is not None and progress.position >= end

    def version(self, key: str) -> int | None:
        found = self.store.get(key)
        return found and found.version


@asynccontextmanager
async def ingesting(
    topic: Topic, state: NamedState, folder: Path, *partitions: int, retention: TombstoneRetention = UNLIMITED
) -> AsyncIterator[Running]:
    """Follow these partitions, both unless said, from where the store in the folder is on."""
    running = Running(topic, state, folder, retention)
    task = asyncio.create_task(running.ingestion.run())
    for partition in partitions or BOTH:
        running.ingestion.assign(running.partition(partition))
    try:
        yield running
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        running.store.close()
