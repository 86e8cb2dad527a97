"""The main path of a sink: write the effect of records to the store, and their positions with them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from contracts.metrics import sink as metrics
from contracts.records.state_record import EPOCH, MICROSECOND
from contracts.sinks import Move, PositionConflictError, RowBatch, RowsRefusedError
from services.runtime.broker_clock import BrokerClock
from services.runtime.worker.handler import Handler, WorkerMetrics
from services.runtime.worker.newest_record import BacklogTime
from services.sink.partition import SinkPartition, WaitingRecords
from services.sink.plan import RefusedRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from contracts.metrics.counts import Counts
    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import FencedGroupConsumer
    from services.runtime.worker.assignment import AssignmentFigures
    from services.runtime.worker.backpressure import Backpressure
    from services.runtime.worker.newest_record import NewestRecord
    from services.runtime.worker.partition import AssignedPartition, CreateTask
    from services.sink.dead_letters import DeadLetters
    from services.sink.plan import Planner, WritePlan
    from services.sink.retried_store import RetriedStore
    from services.sink.takeover import KnownOffsets, OffsetsOf

log = logging.getLogger(__name__)

VERIFY_EVERY_S = 5.0
RETRY_S = 0.5
"""The pause before the broker is asked again for offsets that it did not return, or for a commit that it refused."""
EXPIRE_EVERY_S = 30.0
MAX_BATCH_BYTES = 4 << 20
"""The size of the records of a write from which on no further partition joins it."""


class SinkDependencies(NamedTuple):
    """The dependencies of a sink of one state."""

    state: str
    batch: int
    """The maximum number of records per write."""
    consumer: FencedGroupConsumer
    store: RetriedStore
    planner: Planner
    dead_letters: DeadLetters
    counts: Counts
    newest: NewestRecord
    offsets: OffsetsOf
    now: Callable[[], datetime]
    clock: Callable[[], float]


class SinkHandler(Handler[SinkPartition]):
    """Writes the records of one state to a store. One write at a time has the records of all partitions that wait."""

    def __init__(self, dependencies: SinkDependencies, backpressure: Backpressure) -> None:
        self._state = dependencies.state
        self._batch = dependencies.batch
        self._consumer = dependencies.consumer
        self._store = dependencies.store
        self._planner = dependencies.planner
        self._dead_letters = dependencies.dead_letters
        self._counts = dependencies.counts
        self._offsets = dependencies.offsets
        self._now = dependencies.now
        self._clock = dependencies.clock
        self._broker_clock = BrokerClock(dependencies.clock)
        self._backlog_time = BacklogTime(dependencies.newest, self._broker_clock, self._now, self._clock)
        self._backpressure = backpressure
        self._partitions: dict[int, SinkPartition] = {}
        self._waiting: list[WaitingRecords] = []
        self._arrived = asyncio.Event()
        self._asking = asyncio.Lock()
        """One partition asks for its position at a time: during an outage, only one of them tries again and again."""
        self.loop_metrics = WorkerMetrics(metrics.COMMITS, metrics.KAFKA_ERRORS, metrics.LAG, (self._state,))

    # Handler

    @override
    async def start(self) -> None:
        """Wait until the store is open."""
        await self._store.open()

    @override
    def begin(self, spawn: CreateTask) -> None:
        """Write what waits; look for losses of the store; remove expired rows."""
        for work in (self._write(), self._verify(), self._expire()):
            _ = spawn(work)

    @override
    async def open(self, partition: AssignedPartition) -> SinkPartition:
        if self._planner.can_expire:
            await self._backlog_time.note(partition)
        state = self._partitions[partition.number] = SinkPartition(partition)
        return state

    @override
    async def process(self, state: SinkPartition, records: Sequence[Record]) -> None:
        """Wait until the effect of these records is in the store."""
        self._broker_clock.note(records[-1].timestamp_ms)
        with self._backpressure.counted(records):
            if not state.is_taken_over:
                await self._take_over(state)
            if not state.is_taken_over:  # it is being revoked
                return
            waiting = WaitingRecords(state, tuple(records), asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            self._arrived.set()
            await waiting.written

    @override
    def abandon(self, state: SinkPartition) -> None:
        if self._partitions.get(state.partition.number) is state:
            del self._partitions[state.partition.number]
        self._waiting = [waiting for waiting in self._waiting if waiting.state is not state]

    @override
    def progress(self) -> float:
        progress = (metrics.RECORDS, metrics.REMOVED, metrics.FAILURES)
        return sum(self._counts.get(metric, self._state) for metric in progress)

    @override
    def problem(self) -> str | None:
        """Return why nothing is written. An outage of the store is no reason for a restart."""
        return self._store.problem()

    @override
    def measure(self, figures: AssignmentFigures) -> None:
        self._counts.set(metrics.PENDING, self._backpressure.count, self._state)
        self._counts.set(metrics.OUTAGE_SECONDS, self._store.outage_s, self._state)

    @override
    async def close(self) -> None:
        await self._store.close()

    # Taking a partition over

    async def _take_over(self, state: SinkPartition) -> None:
        """Find out the position in the store of a partition, and commit the offset from which it is read.

        The commit precedes the first write: it shows the next member that the position is one of this topic. The other
        partitions do not wait for it.
        """
        partition = state.partition
        while True:
            if state.stored is None:
                await self._compare(state)
            if state.stored is not None:
                state.is_taken_over = await self._consumer.prove(partition.number, partition.first or 0)
            if state.is_taken_over or partition.is_closing:
                return
            await asyncio.sleep(RETRY_S)

    async def _compare(self, state: SinkPartition) -> None:
        """Compare the position in the store with the offset from which a partition is read, unless that is unknown."""
        number, first = state.partition.number, state.partition.first or 0
        async with self._asking:
            position = (await self._store.positions()).get(number, 0)
        if position <= first:
            state.stored = position
        elif (offsets := await self._offsets(number)) is not None:
            if offsets.is_of(position, first):
                state.note_conflict(position)
            elif await self._is_owned(number, offsets):
                await self._move_back(state, Move(position, first))

    async def _is_owned(self, number: int, offsets: KnownOffsets) -> bool:
        """Return whether this member owns a partition: it may have been frozen since the record was read.

        Without a committed offset there is nothing to commit again as a proof, and no other member has written.
        """
        return offsets.committed < 0 or await self._consumer.prove(number, offsets.committed)

    async def _move_back(self, state: SinkPartition, move: Move) -> None:
        """Move the position of a former topic back, before the group commits in this one."""
        with suppress(PositionConflictError):  # another sink was faster: compare again
            _ = await self._store.write(RowBatch((), {state.partition.number: move}))
            state.stored = move.position
            facts = {"state": self._state, "partition": state.partition.number, **move._asdict()}
            log.warning("the position in the store was one of a former topic, and moved back", extra={"facts": facts})

    # Writing

    async def _write(self) -> None:
        while True:
            while not (batch := self._take()):
                self._arrived.clear()
                await self._arrived.wait()
            began = self._clock()
            await self._write_batch(batch)
            self._counts.observe(metrics.WRITE_SECONDS, self._clock() - began, self._state)
            for waiting in batch:
                if not waiting.written.done():
                    waiting.written.set_result(None)

    def _take(self) -> list[WaitingRecords]:
        """Take the records that have waited longest, as many as one write may have."""
        batch: list[WaitingRecords] = []
        count = size = 0
        for waiting in self._waiting:
            if batch and (count + len(waiting.records) > self._batch or size >= MAX_BATCH_BYTES):
                break
            batch.append(waiting)
            count += len(waiting.records)
            size += sum(record.size for record in waiting.records)
        del self._waiting[: len(batch)]
        return batch

    async def _write_batch(self, batch: list[WaitingRecords]) -> None:
        """Write the effect of these records. Those that are refused become dead letters, before the others count."""
        refused: dict[tuple[int, int], RefusedRecord] = {}
        while batch := self._writable(batch):
            records = [record for waiting in batch for record in waiting.state.unwritten(waiting.records)]
            plan = self._planner.plan([record for record in records if _place(record) not in refused], self._now_us())
            if plan.refused:
                await self._refuse(refused, plan.refused, others=_changes(plan))
                continue
            moves = {waiting.state.partition.number: waiting.state.move(waiting.records[-1]) for waiting in batch}
            try:
                changed = await self._store.write(RowBatch(plan.steps, moves))
            except PositionConflictError as error:
                self._counts.add(metrics.CONFLICTS, self._state)
                for waiting in batch:
                    waiting.state.note_conflict(error.positions.get(waiting.state.partition.number, 0))
            except RowsRefusedError as error:
                by_place = {_place(record): record for record in records}
                rows = [(by_place[refusal.row.partition, refusal.row.offset], refusal) for refusal in error.refused]
                new = [RefusedRecord(record, refusal.reason, refusal.row.key) for record, refusal in rows]
                await self._refuse(refused, new, others=_changes(plan) - len(new))
            else:
                for waiting in batch:
                    waiting.state.written(waiting.records[-1])
                self._count(plan, len(records), changed)
                return

    def _writable(self, batch: list[WaitingRecords]) -> list[WaitingRecords]:
        """Return what to write of partitions that are still assigned, and of which the store has all records before."""
        for waiting in batch:
            if waiting.state.lacks_records():
                self._read_again(waiting.state)
        assigned = [waiting for waiting in batch if not waiting.state.partition.is_abandoned]
        for waiting in assigned:
            if waiting.state.has(waiting.records[-1]):
                waiting.state.skip(waiting.records[-1])
        return [waiting for waiting in assigned if not waiting.state.has(waiting.records[-1])]

    def _read_again(self, state: SinkPartition) -> None:
        """Read a partition again from the position in the store."""
        if state.partition.is_abandoned:
            return
        position = state.stored or 0
        facts = {"state": self._state, "positions": {str(state.partition.number): position}}
        log.warning("the store lacks records, which are read again", extra={"facts": facts})
        self._counts.add(metrics.REWINDS, self._state)
        state.partition.reopen(position)

    async def _refuse(
        self, refused: dict[tuple[int, int], RefusedRecord], new: Sequence[RefusedRecord], others: int
    ) -> None:
        self._dead_letters.check(new, others)
        for refusal in new:
            await self._dead_letters.send(refusal)
            refused[_place(refusal.record)] = refusal
            self._counts.add(metrics.DEAD_LETTERS, self._state)

    def _count(self, plan: WritePlan, records: int, changed: int) -> None:
        rows = _changes(plan)
        self._dead_letters.check((), rows)
        for metric, by in (
            (metrics.RECORDS, records),
            (metrics.SUPERSEDED, plan.superseded),
            (metrics.EXPIRED, plan.expired),
            (metrics.ROWS, rows),
            (metrics.CHANGED, changed),
        ):
            self._counts.add(metric, self._state, by=by)

    # Beside the writes

    async def _verify(self) -> None:
        """Look for partitions of which the store has lost writes, also without new records."""
        while True:
            await self._find_first_offsets()
            required = {state: state.required for state in self._partitions.values()}  # later ones are not before these
            stored = await self._store.positions()
            for state, position in required.items():
                if position is not None and stored.get(state.partition.number, 0) < position:
                    state.stored = stored.get(state.partition.number, 0)
                    self._read_again(state)
            await asyncio.sleep(VERIFY_EVERY_S)

    async def _find_first_offsets(self) -> None:
        """Find out from which offset on the partitions without a record are read."""
        unread = {
            number: state.partition for number, state in self._partitions.items() if state.partition.first is None
        }
        if unread:
            for number, offset in (await self._consumer.next_offsets(unread.keys())).items():
                if unread[number].first is None:
                    unread[number].first = offset

    async def _expire(self) -> None:
        while True:
            removed = await self._store.remove_expired(self._now_us())
            self._counts.add(metrics.REMOVED, self._state, by=removed)
            if not removed:  # else there may be more
                await asyncio.sleep(EXPIRE_EVERY_S)

    def _now_us(self) -> int:
        """The earlier time of this clock and the broker's, in microseconds since 1970."""
        return (min(self._now(), self._broker_clock.now()) - EPOCH) // MICROSECOND


def _changes(plan: WritePlan) -> int:
    return sum(len(step.rows) + len(step.deletions) for step in plan.steps)


def _place(record: Record) -> tuple[int, int]:
    return record.partition, record.offset
