"""An ingestion that runs on a real topic, and the writes of a test to that topic."""

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
from services.query.store.store import Store
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from contracts.model.named_state import NamedState
    from services.query.ingest.ingestion import ReadProgress, Restart
    from services.query.store import Change

START = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_S = DEADLINE_S
BOTH = (0, 1)
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
    "max.compaction.lag.ms": "1000",
}
"""The settings of a topic that is compacted as soon as possible."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait for the condition, at most WAIT_S."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 (what changes it is in another thread)
            await asyncio.sleep(0.005)


def value(version: int, *, minute: int = 0, **state: object) -> bytes:
    """Return a snapshot of a window that starts this minute after START."""
    start = START + timedelta(minutes=minute)
    times = {"first_seen": start, "as_of": start + timedelta(seconds=version)}
    return orjson.dumps({**times, "version": version, "state": state})


class Topic:
    """A topic of two partitions, and its only writer."""

    def __init__(self, bootstrap: str, name: str, config: dict[str, str] | None = None, partitions: int = 2) -> None:
        self.name = name
        self.client = {"bootstrap.servers": bootstrap}
        self.admin = AdminClient({**self.client})
        self._new = NewTopic(name, partitions, 1, config=config or {})
        self._create()
        self._producer = create_producer({**self.client, "linger.ms": 0}, "test")

    def _create(self) -> None:
        self.admin.create_topics([self._new])[self.name].result(WAIT_S)

    def create_again(self) -> None:
        """Delete the topic, and create it."""
        self.admin.delete_topics([self.name])[self.name].result(WAIT_S)
        wait_until(lambda: self.name not in self.admin.list_topics(timeout=WAIT_S).topics, "deletion", WAIT_S)
        self._create()

    def write(self, *records: tuple[str | bytes, bytes | None], partition: int = 0) -> None:
        """Write these records in their order, and wait until the broker has them."""
        for key, record in records:
            self._producer.produce(self.name, record, key, partition)
        assert self._producer.flush(WAIT_S) == 0


async def compacted(table: Topic, most: int) -> None:
    """Wait until the first partition has at most so many records; each write may close a segment of it."""
    async with asyncio.timeout(WAIT_S):
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
    """A ChangeListener that stores what it receives."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.restarts: list[StatePartition] = []
        self.other_topics: list[bool] = []
        self.running: Running | None = None
        self.at_restart: list[tuple[int | None, ReadProgress | None]] = []
        """The version of key `a` that could still be read at each restart, and the progress then."""

    def changed(self, changes: Sequence[Change]) -> None:
        self.changes += changes

    def restarted(self, restart: Restart) -> None:
        part, is_other_topic = restart
        self.restarts.append(part)
        self.other_topics.append(is_other_topic)
        if self.running is not None:
            self.at_restart.append((self.running.version("a"), self.running.ingestion.progress(part)))

    def versions(self, key: str) -> list[int | None]:
        """Return the versions of a key that it received."""
        return [change.entry and change.entry.version for change in self.changes if change.key == key]


class Running:
    """A store, and the ingestion that writes it."""

    def __init__(self, topic: Topic, state: NamedState, folder: Path, retention: TombstoneRetention) -> None:
        self.topic = topic
        self.listener = RecordingListener()
        self.name = state.name
        self.listener.running = self
        self.store = Store(folder, state, "boot")
        self.ingestion = KafkaIngestion(
            KafkaClients(topic.client),
            KafkaAdmin(topic.client, "test"),
            {state.name: state},
            {state.name: self.store},
            self.listener,
            retention=retention,
        )

    def partition(self, partition: int) -> StatePartition:
        return StatePartition(self.name, partition)

    async def caught_up(self, *partitions: int) -> None:
        """Wait until the store has all records that these partitions have now."""
        parts = [self.partition(one) for one in partitions or BOTH]
        end_offsets = await self.ingestion.end_offsets(parts)
        assert len(end_offsets) == len(parts)
        await until(lambda: all(self.reached(part, end) for part, end in end_offsets.items()))

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
    """Read these partitions, by default both, from the position of the store in the folder."""
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
