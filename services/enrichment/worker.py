"""The main path of a worker: read a record, plan its requests, answer them, write the outcomes, commit the offset."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from contracts.records.record import Reason
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.enrichment.alarm import Alarm
from services.enrichment.backpressure import Backpressure
from services.enrichment.calls.caller import Outcome
from services.enrichment.deferred_queue import DeferredQueue
from services.enrichment.dispatcher import Dispatcher
from services.enrichment.errors import EverythingFailsError
from services.enrichment.health import Pulse
from services.enrichment.partitions import Partitions
from services.enrichment.record_queue import RecordQueue

if TYPE_CHECKING:
    from datetime import datetime

    from contracts.planning.request import Request
    from contracts.records.record import Record
    from services.enrichment.dependencies import Dependencies
    from services.enrichment.health import HealthStatus
    from services.enrichment.in_flight import PendingRequest
    from services.enrichment.partition_state import PartitionState

log = logging.getLogger(__name__)

ROOM_WAIT_S = 0.5
"""The time for which reading waits for room before it pauses the partitions."""
PLAN_BATCH = 256
"""The number of snapshots that are planned before other tasks run."""


class Worker:
    """One member of the consumer group. `run` it until `stop`."""

    def __init__(self, dependencies: Dependencies) -> None:
        settings, application = dependencies.settings, dependencies.application
        self._planner = planner = dependencies.planner
        self._dead_letters = application.topics.dead_letters
        self._settings = settings
        self._source = dependencies.source
        self._caller = dependencies.caller
        self._publisher = dependencies.publisher
        self._counts = dependencies.counts
        self._now = dependencies.now
        self._clock = dependencies.clock
        self._unplanned: RecordQueue[tuple[PartitionState, Record]] = RecordQueue()
        self._backpressure = Backpressure(settings.unfinished, settings.unfinished_bytes, settings.max_deferred)
        self._partitions = Partitions(application, settings, self._counts, self._clock, self._backpressure)
        limits = settings.failure_limits
        self._alarm = Alarm(limits.window, limits.share, limits.first)
        self._pulse = Pulse(self._counts, self._clock)
        self._stopping = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._dispatchers = {
            api: Dispatcher(api, settings.in_flight, dependencies.availability, self._tasks.create_task, self._answer)
            for api in set(planner.api_of.values())
        }
        self._deferred = {
            api: DeferredQueue(
                dispatcher,
                dependencies.availability,
                self._partitions,
                self._backpressure,
                dependencies.rereader,
                create_task=self._tasks.create_task,
                replan=self._replan,
            )
            for api, dispatcher in self._dispatchers.items()
        }

    # Lifecycle

    async def run(self) -> None:
        """Work until `stop`. Raises a WorkerError, in a group, when that is no longer possible."""
        self._source.subscribe(self._partitions, asyncio.get_running_loop())
        try:
            async with self._tasks:
                await self._run_until_stopped()
        finally:
            await self._source.close()
            self._log_metrics()

    def stop(self) -> None:
        """Start nothing new; `run` returns when the running requests are finished, or after the settings' timeout."""
        self._stopping.set()

    async def _run_until_stopped(self) -> None:
        planning = self._tasks.create_task(self._plan())
        polling = self._tasks.create_task(self._poll())
        reporting = self._tasks.create_task(self._report())
        try:
            await self._stopping.wait()
            planning.cancel()
            await self._partitions.drain(self._settings.stop_within)
            await self._partitions.wait_for_commits(self._settings.drain)  # polling goes on, and commits
        finally:
            self._close_queues()
            self._partitions.abandon_all()
            for task in (planning, polling, reporting):
                task.cancel()

    def _close_queues(self) -> None:
        """Start no further request when a running one ends."""
        for dispatcher in self._dispatchers.values():
            dispatcher.close()
        for deferred in self._deferred.values():
            deferred.close()

    # Reading and committing

    async def _poll(self) -> None:
        """Poll without a pause: a consumer that stops polling loses its partitions."""
        every, last = self._settings.commit_every.total_seconds(), 0.0
        while True:
            has_room = await self._backpressure.wait_for_room(ROOM_WAIT_S)
            paused = self._stopping.is_set() or not has_room
            if not has_room:
                self._defer_excess()
            is_due = self._clock() - last >= every
            last = self._clock() if is_due else last
            full, positions = self._partitions.full(), self._partitions.positions() if is_due else {}
            records = await self._source.fetch(paused=paused, full=full, positions=positions)
            self._enqueue(self._partitions.route(records))
            self._counts.set(metrics.PAUSED, int(paused))
            if is_due:
                self._pulse.beat(self._backlog())

    def _enqueue(self, records: list[tuple[PartitionState, Record]]) -> None:
        self._backpressure.add(sum(record.size for _, record in records), len(records))
        self._unplanned.put(records)

    def _defer_excess(self) -> None:
        for deferred in self._deferred.values():
            deferred.defer_excess()

    # Planning

    async def _plan(self) -> None:
        while True:
            for state, record in await self._unplanned.take(PLAN_BATCH):
                self._backpressure.release(record.size)
                if not state.is_closed:
                    self._plan_record(state, record)
            await asyncio.sleep(0)

    def _plan_record(self, state: PartitionState, record: Record) -> None:
        """Decode a record, plan its requests, and queue each with its API. Nothing here waits."""
        self._counts.add(metrics.SNAPSHOTS)
        now = self._now()
        try:
            requests = self._requests(state, record, now)
        except ValueError as error:
            self._start_reject(state, record, str(error))
            return
        state.track(record.offset, len(requests))
        for request in requests:
            if not self._deferred[self._planner.api_of[request.enrichment]].defer(state, record.offset, request):
                self._dispatch(state, record, request, now)

    def _requests(self, state: PartitionState, record: Record, now: datetime) -> list[Request]:
        """The requests to start. A tombstone has none. Raises ValueError for a record that cannot be decoded."""
        if record.value is None:
            return []
        requests = self._planner.plan(state, record, now)
        self._alarm.note(failed=False)
        return requests

    def _dispatch(self, state: PartitionState, record: Record, request: Request, now: datetime) -> None:
        if pending := state.add(record, request, now if self._planner.is_limited else None):
            self._dispatchers[self._planner.api_of[request.enrichment]].add(state, pending)
        else:
            self._counts.add(metrics.COALESCED)

    def _replan(self, api: str, state: PartitionState, offset: int, record: Record | None) -> None:
        """Plan a deferred snapshot again. The topic may have lost its record: a later version exists, or it expired."""
        if record is None:
            state.resume(api, offset, 0)
            return
        now = self._now()
        requests = self._planner.replan(state, record, now, api)
        state.resume(api, offset, len(requests))
        for request in requests:
            self._dispatch(state, record, request, now)

    # Enricher

    async def _answer(self, state: PartitionState, pending: PendingRequest) -> None:
        """Answer one request: make its calls, write its outcome, and finish its offsets once Kafka has that."""
        request = pending.request
        outcome = self._skipped(request) or await self._caller.answer(request)
        outcome, output = self._planner.encode(request, outcome, self._now())
        key = request.device_id.encode()
        if outcome.status == "failure":
            await self._send_to_dead_letters(key, self._planner.dead_letter(pending.record, request, outcome))
        self._counts.add(metrics.SUPERSEDED, by=state.begin_write(pending))
        if output is not None:
            await self._publisher.publish(output.topic, key, output.value, output.timestamp)
        self._counts.add(metrics.ANSWERS, request.enrichment, outcome.status)
        state.finish(pending)

    def _skipped(self, request: Request) -> Outcome | None:
        """The outcome of a request that needs no call."""
        if request.skipped is not None:
            return Outcome("skipped", reason=request.skipped)
        self._counts.add(metrics.PLANNED)
        return None

    def _start_reject(self, state: PartitionState, record: Record, detail: str) -> None:
        state.track(record.offset, 1)
        self._backpressure.add(record.size)
        task = self._tasks.create_task(self._reject(state, record, detail))
        task.add_done_callback(lambda _: self._backpressure.release(record.size))
        state.keep_task(task)

    async def _reject(self, state: PartitionState, record: Record, detail: str) -> None:
        if self._alarm.note(failed=True):
            raise EverythingFailsError(self._planner.topic, self._alarm.failed, self._alarm.seen, detail)
        await self._send_to_dead_letters(record.key, DeadLetter.of(record, Reason.UNDECODABLE_SNAPSHOT, detail))
        self._counts.add(metrics.REJECTED)
        state.finish_offset(record.offset)

    async def _send_to_dead_letters(self, key: bytes | None, dead_letter: DeadLetter) -> None:
        await self._publisher.publish(self._dead_letters, shortened(key), dead_letter.encode())
        self._counts.add(metrics.DEAD_LETTERS, dead_letter.reason)

    # Health and metrics

    def health(self) -> HealthStatus:
        """See `monitoring.MonitoredWorker`."""
        return self._pulse.health(
            self._backlog(),
            is_member=self._partitions.is_member,
            is_stopping=self._stopping.is_set(),
            blocked_by=self._source.problem(),
        )

    def measure(self) -> None:
        """See `monitoring.MonitoredWorker`. The lag needs the consumer's thread, so `_report` measures it."""
        self._counts.set(metrics.WAITING, len(self._unplanned))
        self._counts.set(metrics.UNFINISHED, self._backpressure.count)
        self._counts.set(metrics.UNFINISHED_BYTES, self._backpressure.bytes)
        for api, dispatcher in self._dispatchers.items():
            self._counts.set(metrics.QUEUED, len(dispatcher), api)
            self._counts.set(metrics.DEFERRED, self._partitions.deferred_count(api), api)
        self._partitions.measure()

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._settings.stats_every.total_seconds())
            self._counts.set(metrics.LAG, await self._source.lag())
            self.measure()
            self._log_metrics()

    def _backlog(self) -> int:
        """The known number of unread and unplanned snapshots, and of unanswered and deferred requests."""
        return self._backpressure.count + self._backpressure.deferred + int(self._counts.get(metrics.LAG))

    def _log_metrics(self) -> None:
        log.info("stats", extra={"facts": self._counts.values()})
