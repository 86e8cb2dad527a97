"""The main path of every worker: poll, pass the records to the handler, commit what is finished."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic

from services.runtime.worker.assignment import Assignment
from services.runtime.worker.handler import S
from services.runtime.worker.health import HealthStatus, Pulse

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from contracts.metrics.counts import Counts
    from services.runtime.kafka.interfaces import GroupConsumer
    from services.runtime.worker.backpressure import Backpressure
    from services.runtime.worker.handler import Handler, WorkerLimits
    from services.runtime.worker.partition import AssignedPartition

ROOM_WAIT_S = 0.5
"""The time for which reading waits for room before it pauses the partitions."""
STOPPING_POLL_S = 0.05
"""The interval of polls of a worker that stops."""
START_BEAT_S = 1.0
"""The interval at which a worker that starts is noted as alive."""


class Worker(Generic[S]):
    """One member of a consumer group. `run` it until `stop`."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        handler: Handler[S],
        consumer: GroupConsumer,
        limits: WorkerLimits,
        backpressure: Backpressure,
        counts: Counts,
        clock: Callable[[], float],
    ) -> None:
        self._handler = handler
        self._consumer = consumer
        self._limits = limits
        self._backpressure = backpressure
        self._counts = counts
        self._clock = clock
        self._pulse = Pulse(handler.progress, clock)
        self._stopping = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._beside: set[asyncio.Task[None]] = set()
        self._states: dict[AssignedPartition, S] = {}
        self._assignment = Assignment(
            limits, backpressure, counts, handler.loop_metrics, self._tasks.create_task, self._open, self._drop_state
        )

    # Lifecycle

    async def run(self) -> None:
        """Work until `stop`. Raises a StateloopError, alone or in a group, when that is no longer possible."""
        try:
            if await self._started():
                await self._run_as_member()
        finally:
            await self._handler.close()

    def stop(self) -> None:
        """Start nothing new; `run` returns when the work in progress is finished, or after the limits' time."""
        self._stopping.set()

    async def _started(self) -> bool:
        """Wait until the handler has started; return False if the worker is to stop first."""
        starting = asyncio.create_task(self._handler.start())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            while not (starting.done() or stopping.done()):
                await asyncio.wait((starting, stopping), timeout=START_BEAT_S, return_when=asyncio.FIRST_COMPLETED)
                self._pulse.beat(backlog=0)
            if starting.done():
                starting.result()
            return starting.done() and not self._stopping.is_set()
        finally:
            starting.cancel()
            stopping.cancel()
            await asyncio.gather(starting, stopping, return_exceptions=True)

    async def _run_as_member(self) -> None:
        self._consumer.subscribe(self._assignment, asyncio.get_running_loop())
        try:
            async with self._tasks:
                await self._run_until_stopped()
        finally:
            await self._consumer.close()
            self._handler.report()

    async def _run_until_stopped(self) -> None:
        self._handler.begin(self._spawn)
        for work in (self._poll(), self._report()):
            _ = self._spawn(work)
        try:
            await self._stopping.wait()
            await self._assignment.drain(self._limits.stop_within)
            patience = min(self._limits.drain, self._limits.stop_within)
            await self._assignment.wait_for_commits(patience)  # polling goes on, and commits
        finally:
            self._handler.stop()
            self._assignment.abandon_all()
            for task in self._beside:
                task.cancel()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task that belongs to no partition, until it ends or the worker does."""
        task = self._tasks.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    # Reading and committing

    async def _poll(self) -> None:
        """Poll without a pause: a consumer that stops polling loses its partitions."""
        every, last = self._limits.commit_every.total_seconds(), float("-inf")
        while True:
            has_room = await self._backpressure.wait_for_room(ROOM_WAIT_S)
            if not has_room:
                self._handler.make_room()
            if self._stopping.is_set():
                await asyncio.sleep(STOPPING_POLL_S)  # paused partitions return at once
            await self._seek()
            is_due = self._clock() - last >= every
            last = self._clock() if is_due else last
            records = await self._consumer.fetch(
                paused=self._stopping.is_set() or not has_room,
                full=self._assignment.full(),
                positions=self._assignment.positions() if is_due else {},
            )
            self._assignment.route(records)
            if is_due:
                self._pulse.beat(self._backlog())

    async def _seek(self) -> None:
        if seeks := dict(self._assignment.seeks):
            done = await self._consumer.seek(seeks)
            self._assignment.sought({number: seeks[number] for number in done})

    # Processing

    def _open(self, partition: AssignedPartition) -> None:
        partition.loop = self._tasks.create_task(self._process(partition))

    async def _process(self, partition: AssignedPartition) -> None:
        """Pass the records of a partition to the handler until the assignment ends."""
        self._states[partition] = state = await self._handler.open(partition)
        while not partition.is_closing:
            records = await partition.take(self._limits.batch, self._limits.idle)
            if not partition.is_closing:
                await self._handler.process(state, records)
            await asyncio.sleep(0)  # a handler that waits for nothing lets other tasks run

    def _drop_state(self, partition: AssignedPartition) -> None:
        if (state := self._states.pop(partition, None)) is not None:
            self._handler.abandon(state)

    # Health and metrics

    def unhealthy(self) -> str | None:
        """Return why the process must be restarted; None if the worker moves."""
        return self.health().unhealthy(self._limits.stuck_after)

    def unready(self) -> str | None:
        """Return why the worker does not work now; None if it does."""
        return self.health().unready()

    def health(self) -> HealthStatus:
        """Return the facts behind both."""
        return self._pulse.health(
            self._backlog(),
            is_member=self._assignment.is_member,
            is_stopping=self._stopping.is_set(),
            blocked_by=self._consumer.problem(),
            hindered_by=self._handler.problem(),
        )

    def measure(self) -> None:
        """Update the gauges. The lag needs the consumer's thread, so `_report` measures it."""
        self._handler.measure(self._assignment.figures())

    async def _report(self) -> None:
        metrics = self._handler.loop_metrics
        while True:
            await asyncio.sleep(self._limits.report_every.total_seconds())
            self._counts.set(metrics.lag, await self._consumer.lag(), *metrics.labels)
            self.measure()
            self._handler.report()

    def _backlog(self) -> int:
        """The known number of unread and unprocessed records, and of unanswered and deferred requests."""
        metrics = self._handler.loop_metrics
        lag = int(self._counts.get(metrics.lag, *metrics.labels))
        return self._backpressure.count + self._backpressure.deferred + lag
