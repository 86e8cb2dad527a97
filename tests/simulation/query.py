"""A model of the query of the job: the plain Python fold, with what Spark does around it.

It publishes a snapshot for each record at once, with `Emit.BATCH` the last one of each window at the end of a batch,
and with `Emit.CLOSE` the last one of each window that is over, and commits positions and state together. Its watermark
moves by heartbeats, and a batch applies the watermark that was known when it began. Spark publishes the windows that
are over in its next batch, which may have records; the model in one without, just after the commit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contracts.model.emit import Emit
from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import HEARTBEAT_KEY, RecordError
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.values import EndlessRange, Output, Partition
from spark_app.checkpoint.unpublished_windows import UnpublishedWindows
from tests.simulation.kafka.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from contracts import Application
    from contracts.records.fold import Partial, WindowKey
    from contracts.records.record import Delta, Record
    from contracts.wire import Snapshot
    from services.runtime.kafka.interfaces import Producer
    from tests.simulation.network import ProcessNetwork, WatchedBroker

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Commit:
    """The result of a batch, on disk: the whole state of the job. It outlives the process."""

    epoch: int
    positions: dict[Partition, int]
    windows: dict[WindowKey, Partial] = field(default_factory=dict)
    seen: frozenset[tuple[WindowKey, str]] = frozenset()
    watermark: datetime | None = None
    """The time before which windows are over."""
    closed: datetime | None = None
    """With `Emit.CLOSE`, the time before which windows are published."""
    unpublished: UnpublishedWindows = field(default_factory=UnpublishedWindows)
    """The windows that the job merges, and does not publish."""
    is_built: bool = True
    """Whether a state that was rebuilt or restored has read the topics."""


class Checkpoint:
    """The folder of a checkpoint: the last commit."""

    def __init__(self, commit: Commit) -> None:
        self.last = commit


@dataclass(frozen=True)
class JobContext:
    """The parts of a job. `now` is its clock."""

    application: Application
    partitions: int
    batch_s: float
    backlog: int
    checkpoint: Checkpoint
    broker: WatchedBroker
    network: ProcessNetwork
    now: Callable[[], datetime]
    random: Random
    lagging: Collection[Partition]
    """The partitions that are not read now: Spark reads partitions at different speeds."""


class Query:
    """A run of the query from the last commit on. Heartbeats whose keys begin with `prefix` are its own."""

    def __init__(self, context: JobContext, producer: Producer, prefix: bytes) -> None:
        self._context = context
        self._application = application = context.application
        self._prefix = prefix
        self._commit = last = context.checkpoint.last
        self._positions = dict(last.positions)
        self._decoder = Decoder(application, last.epoch, context.now, context.partitions)
        self._fold = Fold(application, last.epoch, dict(last.windows), set(last.seen))
        self._kept_for = application.kept_for + application.skew
        self._next_watermark = last.watermark
        self._cursors = {place: Cursor(context.broker, context.network, PATIENCE_S) for place in last.positions}
        for place, cursor in self._cursors.items():
            cursor.assign({place: EndlessRange(last.positions[place])})
        self._producer = producer
        self._sent: list[asyncio.Future[Sequence[int]]] = []
        self._changed: dict[WindowKey, Snapshot] = {}
        """The last snapshot of each window that is published at the end of the batch."""
        self._is_each_published = application.emit is Emit.EVENT
        self._emits_closed = application.emit is Emit.CLOSE

    @property
    def is_built(self) -> bool:
        """Whether the state has read the topics; else a catch-up builds it, and publishes each window once."""
        return self._commit.is_built

    @property
    def backlog(self) -> int:
        """The number of unread records."""
        logs = self._context.broker.topics
        return sum(logs.log(place).end - offset for place, offset in self._positions.items())

    def catch_up(self) -> None:
        """Read the backlog in one batch, which publishes the last snapshot of each window that has changed.

        The first batch of a state that was rebuilt or restored publishes each window.
        """
        self._is_each_published = False
        for record in self._unread(()):
            self._add(record)
        if not self.is_built and not self._emits_closed:
            self._changed = {
                window: present(self._application, window, partial, self._commit.epoch)
                for window, partial in self._fold.windows.items()
            }
        self._is_each_published = self._application.emit is Emit.EVENT

    @property
    def has_read(self) -> bool:
        """Whether it has processed records since the last commit."""
        return self._positions != self._commit.positions

    async def read(self, until: float) -> None:
        """Process the unread records, or wait until there may be some, or until a time."""
        records = self._unread(self._context.lagging)
        if not records:
            topics = self._application.topics
            await self._context.network.pause(topics.events, topics.feedback, until=until)
        for record in records:
            self._add(record)

    async def commit(self) -> None:
        """Commit the batch when all that it has sent is acknowledged. Raises DeliveryFailedError."""
        for snapshot in self._changed.values():
            self._publish(snapshot)
        self._changed = {}
        _ = await asyncio.gather(*self._sent)
        self._sent = []
        watermark, former = self._next_watermark, self._commit.watermark
        if watermark is not None and watermark != former and not self._emits_closed:
            self._expire(watermark)
        self._store(positions=dict(self._positions), watermark=watermark, is_built=True)
        await self.close_windows()

    async def close_windows(self) -> None:
        """With `Emit.CLOSE`, publish the windows that are over by the last commit, and remove them.

        After a crash in between the next run does it again: with the same watermark, and so with the same snapshots.
        """
        watermark = self._commit.watermark
        if not self._emits_closed or watermark is None or watermark == self._commit.closed:
            return
        for window, partial in self._fold.windows.items():
            if window[1] <= watermark:
                self._publish(present(self._application, window, partial, self._commit.epoch))
        _ = await asyncio.gather(*self._sent)
        self._sent = []
        self._expire(watermark)
        self._store(closed=watermark)

    def _store(self, **changes: Any) -> None:
        windows, seen = dict(self._fold.windows), frozenset(self._fold.seen)
        self._context.checkpoint.last = self._commit = replace(self._commit, windows=windows, seen=seen, **changes)

    def _unread(self, lagging: Collection[Partition]) -> list[Record]:
        """Return the next records: in order within a partition, and in any order of the partitions."""
        queues = {
            place: list(reversed(cursor.next_records()))
            for place, cursor in self._cursors.items()
            if place not in lagging and self._context.broker.topics.log(place).end > self._positions[place]
        }
        places = [place for place, records in queues.items() for _ in records]
        self._context.random.shuffle(places)
        return [queues[place].pop() for place in places]

    def _add(self, record: Record) -> None:
        self._positions[Partition(record.topic, record.partition)] = record.offset + 1
        if record.value is None and (record.key or b"").startswith(HEARTBEAT_KEY):
            self._beat(record)
            return
        try:
            deltas = self._deltas(record)
        except RecordError as error:
            dead_letter = DeadLetter.of(record, error.reason, error.detail, epoch=self._commit.epoch)
            self._send(Output(self._application.topics.dead_letters, shortened(record.key), dead_letter.encode()))
            return
        for delta in deltas:
            self._merge(delta)

    def _deltas(self, record: Record) -> tuple[Delta, ...]:
        is_event = record.topic == self._application.topics.events
        return self._decoder.event(record) if is_event else (self._decoder.feedback(record),)

    def _merge(self, delta: Delta) -> None:
        watermark = self._commit.watermark
        if watermark is not None and delta.first_seen <= watermark:
            return  # Spark drops it
        snapshot = self._fold.add(delta)
        if snapshot is None:
            return
        if self._is_each_published:
            self._publish(snapshot)
        elif not self._emits_closed:
            self._changed[snapshot.window] = snapshot

    def _publish(self, snapshot: Snapshot) -> None:
        if self._commit.unpublished.has(snapshot.first_seen):
            return
        number = partition(snapshot.device_id.encode(), self._context.partitions)
        key = window_key(*snapshot.window)
        self._send(Output(self._application.topics.snapshots, key, snapshot.encode(), number))

    def _send(self, output: Output) -> None:
        self._sent.append(asyncio.ensure_future(self._producer.send([output])))

    def _beat(self, heartbeat: Record) -> None:
        """Note the watermark of a heartbeat of this run."""
        written = (heartbeat.key or b"").removeprefix(self._prefix)
        if written.isdigit():
            time = datetime.fromtimestamp(min(int(written), heartbeat.timestamp_ms) / 1000, UTC)
            known, watermark = self._next_watermark, time - self._kept_for
            self._next_watermark = watermark if known is None else max(known, watermark)

    def _expire(self, watermark: datetime) -> None:
        """Remove the windows that are over, and what is known of their records."""
        fold = self._fold
        fold.windows = {window: partial for window, partial in fold.windows.items() if window[1] > watermark}
        fold.seen = {(window, name) for window, name in fold.seen if window[1] > watermark}
