"""Ingest from Kafka: one thread reads the topics of all named states, decodes, writes, and notifies the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from contracts.errors import DeclarationError
from contracts.records.state_record import UndecodableRecordError
from services.query.errors import IngestionError
from services.query.ingest.assignment import PartitionAssignment
from services.query.ingest.change_queue import ChangeQueue
from services.query.ingest.decode import UpdateDecoder
from services.query.ingest.freshness import FreshnessTracker
from services.query.ingest.ingestion import Restart
from services.query.ingest.misplaced import MisplacedKeys
from services.query.ingest.partition_counts import growing_states
from services.query.ingest.tombstones import UNLIMITED
from services.query.store import StatePartition
from services.runtime.errors import ConsumerFailedError, KafkaRequestError
from services.runtime.kafka.values import LATEST, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from contracts.model.named_state import NamedState
    from contracts.records.record import Record
    from services.query.ingest.ingestion import ChangeListener, ReadProgress
    from services.query.ingest.tombstones import TombstoneRetention
    from services.query.store import Store, Update
    from services.runtime.kafka.interfaces import Admin, Kafka

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 5.0


class StateSource(NamedTuple):
    """A named state, the store that its records go to, and their decoder."""

    state: NamedState
    store: Store
    decoder: UpdateDecoder


class PendingWrite:
    """The records of one state that were read and are written next."""

    __slots__ = ("offsets", "updates")

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.offsets: defaultdict[int, list[int]] = defaultdict(list)


class IngestCounts:
    """Counters since the start, by state. Written by the thread, read from anywhere."""

    def __init__(self, states: Iterable[str]) -> None:
        self.records = dict.fromkeys(states, 0)
        self.undecodable = dict.fromkeys(self.records, 0)
        self.rounds = 0


class KafkaIngestion:
    """See `Ingestion`. Raises DeclarationError if two states have one topic."""

    def __init__(  # noqa: PLR0913  # what a test replaces
        self,
        kafka: Kafka,
        admin: Admin,
        states: Mapping[str, NamedState],
        stores: Mapping[str, Store],
        listener: ChangeListener,
        *,
        retention: TombstoneRetention = UNLIMITED,
    ) -> None:
        _check_topics(states)
        self._sources = {one.topic: StateSource(one, stores[name], UpdateDecoder(one)) for name, one in states.items()}
        self._topics = {name: one.topic for name, one in states.items()}
        self._listener = listener
        self._reader = kafka.partition_reader("query-ingest")
        self._admin = admin
        self._end_offset_thread = ThreadPoolExecutor(1, "end-offsets")
        self._leaderless: frozenset[Partition] = frozenset()
        """The partitions that had no leader when their end offsets were requested last."""
        self._retention = retention
        self._assignment = PartitionAssignment(self._reader, self._topics, stores, FreshnessTracker(stores, retention))
        self._commands: deque[Callable[[], None]] = deque()
        self._interrupted = False
        self._bulk_loading = dict(stores)
        self.counts = IngestCounts(states)
        self.misplaced = MisplacedKeys(states, stores)

    def assign(self, partition: StatePartition) -> None:
        """See `Ingestion`."""
        self._commands.append(partial(self._assignment.add, partition))

    def unassign(self, partition: StatePartition) -> None:
        """See `Ingestion`."""
        self._commands.append(partial(self._assignment.remove, partition))

    def progress(self, partition: StatePartition) -> ReadProgress | None:
        """See `Ingestion`."""
        return self._assignment.progress.get(partition)

    async def end_offsets(self, partitions: Collection[StatePartition]) -> dict[StatePartition, int]:
        """See `Ingestion`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._end_offset_thread, self._read_end_offsets, partitions)

    def _read_end_offsets(self, partitions: Collection[StatePartition]) -> dict[StatePartition, int]:
        requested = {Partition(self._topics[partition.state], partition.number): partition for partition in partitions}
        try:
            found = self._admin.available_offsets(dict.fromkeys(requested, LATEST), RESPONSE_TIMEOUT_S)
        except KafkaRequestError as error:
            log.warning("end offsets are unknown", extra={"facts": {"detail": error.detail}})
            return {}
        leaderless = frozenset(requested.keys() - found.keys())
        if new := leaderless - self._leaderless:
            facts = {"partitions": sorted(f"{topic}/{number}" for topic, number in new)}
            log.warning("partitions have no leader: no instance takes them over yet", extra={"facts": facts})
        self._leaderless = self._leaderless - requested.keys() | leaderless
        return {requested[partition]: offset for partition, offset in found.items()}

    async def growing(self, states: Collection[str]) -> Collection[str]:
        """See `Ingestion`."""
        watched = [source.state for source in self._sources.values() if source.state.name in states]
        return await asyncio.get_running_loop().run_in_executor(
            self._end_offset_thread, growing_states, watched, self._admin
        )

    async def run(self) -> None:
        """See `Ingestion`. Raises IngestionError, StoreError."""
        self._changes = ChangeQueue(asyncio.get_running_loop(), self._listener, lambda: self._reader.is_stopping)
        freshness = asyncio.create_task(self._track_freshness())
        try:
            await self._reader.run(self._run_round)
        except ConsumerFailedError as error:
            raise IngestionError(error.code, error.detail) from error
        finally:
            freshness.cancel()  # the thread for end offsets stays: a cluster that leaves may still request them

    async def _track_freshness(self) -> None:
        """Note at intervals, while the store has all records, that it has."""
        while self._retention.retention_ms:
            at = self._retention.now()
            end_offsets = await self.end_offsets(tuple(self._assignment.progress))
            self._commands.append(partial(self._assignment.set_end_offsets, end_offsets, at))
            await asyncio.sleep(self._retention.check_interval_s)

    def _run_round(self) -> None:
        """Run one round, in the thread. If the client raises anywhere in it, the next round starts with a rewind."""
        self.counts.rounds += 1
        if self._interrupted:
            log.warning("records that were not written are read again")
            self._assignment.rewind()
        self._interrupted = True
        self._run_commands()
        self._ingest(self._reader.read(wait=not self._assignment.is_clearing))
        self._drop_expired()
        self._finish_bulk_loads()
        self._interrupted = False

    def _run_commands(self) -> None:
        while self._commands:
            self._commands.popleft()()
        self._assignment.clear_some()

    def _ingest(self, pieces: Iterable[Sequence[Record]]) -> None:
        """Decode each piece while the processor has it in its cache, and write the whole batch at once."""
        pending: defaultdict[str, PendingWrite] = defaultdict(PendingWrite)
        for records in pieces:
            for record in records:
                self._decode(self._sources[record.topic], record, pending[record.topic])
        for topic, one in pending.items():
            self._write(self._sources[topic], one)
        for place, end in self._reader.ended().items():
            partition = self._partition(place)
            if not self._restart_if_stale(partition, [end]):  # compaction may have removed the last records
                self._assignment.reached(partition, end)
        for place, end in sorted(self._reader.lost().items()):
            if (partition := self._partition(place)) in self._assignment:
                position = self._assignment.position(partition) or 0
                self._restart(partition, "its topic no longer has the next record", is_other_topic=end < position)

    def _decode(self, source: StateSource, record: Record, pending: PendingWrite) -> None:
        pending.offsets[record.partition].append(record.offset)
        try:
            update = source.decoder.decode(record)
        except UndecodableRecordError as error:
            self.counts.undecodable[source.state.name] += 1
            facts = {"topic": source.state.topic, "partition": record.partition, "offset": record.offset}
            log.warning("a record is skipped", extra={"facts": {**facts, "reason": error.reason}})
            return
        if update is not None:
            pending.updates.append(update)

    def _drop_expired(self) -> None:
        """Drop windows that expired by the clock; no record has to arrive for that."""
        for source in self._sources.values():
            source.store.drop_expired()

    def _finish_bulk_loads(self) -> None:
        """Switch the stores that caught up for the first time since the start from fast loading to fast reading."""
        for name in [name for name in self._bulk_loading if self._assignment.is_almost_caught_up(name)]:
            self._changes.call(self._bulk_loading.pop(name).finish_bulk_load)

    def _write(self, source: StateSource, pending: PendingWrite) -> None:
        """Write a batch, and pass its changes on."""
        name, updates = source.state.name, pending.updates
        restarted = {
            one
            for one, offsets in pending.offsets.items()
            if self._restart_if_stale(StatePartition(name, one), offsets)
        }
        if restarted:
            updates = [update for update in updates if update.partition not in restarted]
        positions = {one: offsets[-1] + 1 for one, offsets in pending.offsets.items() if one not in restarted}
        if not positions:
            return
        self.misplaced.check(name, updates)
        self._changes.put(source.store.apply(updates, positions))
        for number, position in positions.items():
            self._assignment.reached(StatePartition(name, number), position)
        self.counts.records[name] += sum(len(pending.offsets[one]) for one in positions)

    def _restart_if_stale(self, partition: StatePartition, offsets: Iterable[int]) -> bool:
        """Read the partition from its beginning if it may miss a tombstone; return whether it does."""
        stale = self._assignment.may_miss_tombstone(partition, offsets)
        if stale:
            self._restart(partition, "it was not read for longer than its topic keeps tombstones")
        return stale

    def _restart(self, partition: StatePartition, reason: str, *, is_other_topic: bool = False) -> None:
        def notify() -> bool:
            return self._changes.call(lambda: self._listener.restarted(Restart(partition, is_other_topic)))

        self._assignment.restart(partition, reason, notify)

    def _partition(self, place: Partition) -> StatePartition:
        return StatePartition(self._sources[place.topic].state.name, place.number)


def _check_topics(states: Mapping[str, NamedState]) -> None:
    names: dict[str, str] = {}
    for name, state in states.items():
        if (other := names.setdefault(state.topic, name)) != name:
            raise DeclarationError(f"state {name!r}", f"has the topic of {other!r}", "Declare one state of a topic")
