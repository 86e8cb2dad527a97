"""The main path of a sink: read records, write their effect to the store, commit their offsets."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics import sink as metrics
from contracts.sinks import PositionConflictError, RowBatch, RowsRefusedError
from services.sink.partitions import SinkPartitions
from services.sink.pending import PendingRecords
from services.sink.plan import RefusedRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.metrics.counts import Counts
    from services.runtime.source import SeekableSource
    from services.sink.dead_letters import DeadLetters
    from services.sink.partitions import RoutedRecord
    from services.sink.plan import Planner, WritePlan
    from services.sink.retried_store import RetriedStore
    from services.sink.settings import SinkSettings

log = logging.getLogger(__name__)

ROOM_WAIT_S = 0.5
"""The time for which reading waits for room before it pauses the partitions."""
COMMIT_EVERY_S = 0.5
VERIFY_EVERY_S = 5.0
EXPIRE_EVERY_S = 30.0
REPORT_EVERY_S = 5.0


class SinkDependencies(NamedTuple):
    """The dependencies of a sink of one state."""

    state: str
    settings: SinkSettings
    source: SeekableSource
    store: RetriedStore
    planner: Planner
    dead_letters: DeadLetters
    counts: Counts
    now: Callable[[], int]
    """The time in microseconds since 1970."""
    clock: Callable[[], float]


class SinkWorker:
    """One member of the consumer group of a state. `run` it until `stop`."""

    def __init__(self, dependencies: SinkDependencies) -> None:
        settings = dependencies.settings
        self._state = dependencies.state
        self._settings = settings
        self._source = dependencies.source
        self._store = dependencies.store
        self._planner = dependencies.planner
        self._dead_letters = dependencies.dead_letters
        self._counts = dependencies.counts
        self._now = dependencies.now
        self._clock = dependencies.clock
        self._partitions = SinkPartitions(lambda metric: self._counts.add(metric, self._state))
        self._pending = PendingRecords(settings.unfinished, settings.unfinished_bytes)
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._polled = self._clock()

    # Lifecycle

    async def run(self) -> None:
        """Work until `stop`. Raises a StateloopError, alone or in a group, when that is no longer possible."""
        try:
            if await self._opened():
                await self._run_as_member()
        finally:
            await self._store.close()

    def stop(self) -> None:
        """Write no further batch; `run` returns after the current one, or after the settings' timeout."""
        self._stopping.set()

    async def _opened(self) -> bool:
        """Wait until the store is open; return False if the sink is to stop first."""
        opening = asyncio.create_task(self._store.open())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            while not (opening.done() or stopping.done()):
                await asyncio.wait((opening, stopping), timeout=REPORT_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                self._polled = self._clock()
            if opening.done():
                opening.result()
            return opening.done() and not self._stopping.is_set()
        finally:
            await _cancelled(opening, stopping)

    async def _run_as_member(self) -> None:
        self._source.subscribe(self._partitions, asyncio.get_running_loop())
        try:
            async with asyncio.TaskGroup() as tasks:
                started = [
                    tasks.create_task(one)
                    for one in (self._read(), self._write(), self._verify(), self._expire(), self._report())
                ]
                await self._stopping.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.stop_within.total_seconds()):
                        await self._idle.wait()
                for task in started:
                    task.cancel()
        finally:
            await self._source.close()  # commits the last positions

    # Reading and committing

    async def _read(self) -> None:
        """Poll without a pause: a consumer that stops polling loses its partitions."""
        committed_at = 0.0
        while True:
            has_room = await self._pending.wait_for_room(ROOM_WAIT_S)
            await self._rewind()
            is_due = self._clock() - committed_at >= COMMIT_EVERY_S
            committed_at = self._clock() if is_due else committed_at
            positions = self._partitions.positions() if is_due else {}
            records = await self._source.fetch(paused=not has_room, full=(), positions=positions)
            self._pending.put(self._partitions.route(records))
            self._polled = self._clock()

    async def _rewind(self) -> None:
        if rewinds := self._partitions.take_rewinds():
            facts = {"state": self._state, "positions": {str(one): at for one, at in rewinds.items()}}
            log.warning("the store lacks records, which are read again", extra={"facts": facts})
            done = await self._source.seek(rewinds)
            self._partitions.repeat_rewinds({one: at for one, at in rewinds.items() if one not in done})

    # Writing

    async def _write(self) -> None:
        while not self._stopping.is_set():
            records = await self._pending.take(self._settings.sink_batch)
            self._idle.clear()
            began = self._clock()
            await self._write_batch(records)
            self._counts.observe(metrics.WRITE_SECONDS, self._clock() - began, self._state)
            self._pending.release()
            self._idle.set()

    async def _write_batch(self, records: list[RoutedRecord]) -> None:
        """Write the effect of these records. Those that are refused become dead letters, before the others count."""
        refused: dict[tuple[int, int], RefusedRecord] = {}
        while records := await self._writable(records):
            plan = self._planner.plan([one.record for one in records if _place(one) not in refused], self._now())
            if plan.refused:
                await self._refuse(refused, plan.refused, others=_changes(plan))
                continue
            moves = self._partitions.moves(records)
            try:
                changed = await self._store.write(RowBatch(plan.steps, moves))
            except PositionConflictError as error:
                self._counts.add(metrics.CONFLICTS, self._state)
                self._partitions.set_stored(error.positions, moves)
            except RowsRefusedError as error:
                by_place = {_place(one): one.record for one in records}
                rows = [(by_place[one.row.partition, one.row.offset], one) for one in error.refused]
                new = [RefusedRecord(record, one.reason, one.row.key) for record, one in rows]
                await self._refuse(refused, new, others=_changes(plan) - len(new))
            else:
                self._partitions.moved(records)
                self._count(plan, len(records), changed)
                return

    async def _writable(self, records: list[RoutedRecord]) -> list[RoutedRecord]:
        """Return the records of partitions that are still assigned, and of which the store has all before them."""
        if unknown := self._partitions.unknown(records):
            self._partitions.set_stored(await self._store.positions(), unknown)
        return self._partitions.writable(records)

    async def _refuse(
        self, refused: dict[tuple[int, int], RefusedRecord], new: Sequence[RefusedRecord], others: int
    ) -> None:
        self._dead_letters.check(new, others)
        for one in new:
            await self._dead_letters.send(one)
            refused[one.record.partition, one.record.offset] = one
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

    async def _verify(self) -> None:
        """Check for partitions of which the store has lost writes, also without new records."""
        while True:
            if unread := self._partitions.unread():
                self._partitions.set_next_offsets(await self._source.next_offsets(unread))
            required = self._partitions.required()  # positions only grow: one that is read later is not before these
            self._partitions.compare(required, await self._store.positions())
            await asyncio.sleep(VERIFY_EVERY_S)

    async def _expire(self) -> None:
        while True:
            removed = await self._store.remove_expired(self._now())
            self._counts.add(metrics.REMOVED, self._state, by=removed)
            if not removed:  # else there may be more
                await asyncio.sleep(EXPIRE_EVERY_S)

    # Health and metrics

    def unhealthy(self) -> str | None:
        """Return why the process must be restarted; None if it is healthy. An outage of the store is no reason."""
        if problem := self._source.problem():
            return problem
        silent_s = self._clock() - self._polled
        is_stuck = silent_s > self._settings.stuck_after.total_seconds()
        return f"the consumer was not polled for {silent_s:.0f} s" if is_stuck else None

    def unready(self) -> str | None:
        """Return why nothing is written now; None if the sink works."""
        if self._stopping.is_set():
            return "it is stopping"
        if problem := self._store.problem():
            return problem
        return None if self._partitions.is_member else "the consumer group has not taken it in yet"

    def measure(self) -> None:
        """Update the gauges."""
        self._counts.set(metrics.PENDING, len(self._pending), self._state)
        self._counts.set(metrics.OUTAGE_SECONDS, self._store.outage_s, self._state)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            self._counts.set(metrics.LAG, await self._source.lag(), self._state)
            self.measure()


def _changes(plan: WritePlan) -> int:
    return sum(len(step.rows) + len(step.deletions) for step in plan.steps)


def _place(routed: RoutedRecord) -> tuple[int, int]:
    return routed.record.partition, routed.record.offset


async def _cancelled(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
