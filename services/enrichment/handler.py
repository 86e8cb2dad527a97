"""The main path of an enrichment worker: plan the requests of a record, answer them, write the outcomes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from typing_extensions import override

from contracts.metrics import worker as metrics
from contracts.records.record import Reason
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.enrichment.calls.caller import Outcome
from services.enrichment.deferred_queue import DeferredQueue
from services.enrichment.dispatcher import Dispatcher
from services.enrichment.partition_state import PartitionState
from services.runtime.broker_clock import BrokerClock
from services.runtime.errors import EverythingFailsError
from services.runtime.kafka.values import Output
from services.runtime.worker.alarm import Alarm
from services.runtime.worker.handler import Handler, WorkerMetrics
from services.runtime.worker.newest_record import BacklogTime

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Sequence
    from datetime import datetime

    from contracts.planning.request import Request
    from contracts.records.record import Record
    from services.enrichment.dependencies import WorkerDependencies
    from services.enrichment.in_flight import PendingRequest
    from services.runtime.worker.assignment import AssignmentFigures
    from services.runtime.worker.backpressure import Backpressure
    from services.runtime.worker.partition import AssignedPartition, CreateTask

log = logging.getLogger(__name__)

PROGRESS = (metrics.SNAPSHOTS, metrics.CALLS, metrics.TRIALS, metrics.ANSWERS, metrics.DEAD_LETTERS, metrics.COMMITS)
"""The counters of progress. Failed calls count: while an API is down, probing it is the work."""
UNDECODABLE = (
    "The worker stops, because every further record would become a dead letter. Check that Stateloop writes that "
    "topic, in the same version as the worker, then start it again: it continues at its last commit"
)
"""What to do when no record of a topic can be decoded."""


class EnrichmentHandler(Handler[PartitionState]):
    """Answers the requests that follow from the records of a topic: enrichments of snapshots, deliveries of alerts."""

    loop_metrics = WorkerMetrics(metrics.COMMITS, metrics.KAFKA_ERRORS, metrics.LAG)

    def __init__(self, dependencies: WorkerDependencies, backpressure: Backpressure) -> None:
        settings, application = dependencies.settings, dependencies.application
        self._planner = dependencies.planner
        self._dead_letters = application.topics.dead_letters
        self._kept_for = application.kept_for
        self._recent_entries = settings.recent_entries
        self._caller = dependencies.caller
        self._producer = dependencies.producer
        self._counts = dependencies.counts
        self._now = dependencies.now
        self._clock = dependencies.clock
        self._broker_clock = BrokerClock(dependencies.clock)
        self._backlog_time = BacklogTime(dependencies.newest, self._broker_clock, self._now, self._clock)
        self._backpressure = backpressure
        limits = settings.failure_limits
        self._alarm = Alarm(limits.window, limits.share, limits.first)
        self._spawn: CreateTask
        self._states: list[PartitionState] = []
        apis = set(self._planner.api_of.values())
        # Reading resumes at half of the limit, and each API exceeds its share by a request.
        share = max(1, 3 * settings.unfinished_bytes // (8 * max(1, len(apis))))
        in_flight = settings.in_flight, share
        self._dispatchers = {
            api: Dispatcher(api, *in_flight, dependencies.availability, self._create_task, self._answer) for api in apis
        }
        self._deferred = {
            api: DeferredQueue(
                dispatcher,
                dependencies.availability,
                self._states,
                self._backpressure,
                topic=dependencies.planner.topic,
                reread=dependencies.reread,
                create_task=self._create_task,
                replan=self._replan,
            )
            for api, dispatcher in self._dispatchers.items()
        }

    # Handler

    @override
    def begin(self, spawn: CreateTask) -> None:
        """Keep `spawn` for the tasks that wait for an API."""
        self._spawn = spawn

    @override
    async def open(self, partition: AssignedPartition) -> PartitionState:
        """Return an empty state: everything that is not committed is planned again."""
        if self._planner.can_expire:
            await self._backlog_time.note(partition)
        clocks = self._clock, self._broker_clock
        state = PartitionState(partition, self._recent_entries, self._kept_for, *clocks)
        self._states.append(state)
        return state

    @override
    async def process(self, state: PartitionState, records: Sequence[Record]) -> None:
        """Plan the requests of the records, and queue each with its API. Nothing here waits."""
        for record in records:
            self._plan(state, record)

    @override
    def abandon(self, state: PartitionState) -> None:
        """Cancel the requests of a partition."""
        self._states.remove(state)
        self._counts.add(metrics.ABANDONED, by=state.abandon())

    @override
    def make_room(self) -> None:
        """Defer requests of unavailable APIs that are queued."""
        for deferred in self._deferred.values():
            deferred.defer_excess()

    @override
    def stop(self) -> None:
        """Start no further request when a running one ends."""
        for dispatcher in self._dispatchers.values():
            dispatcher.close()
        for deferred in self._deferred.values():
            deferred.close()

    @override
    def progress(self) -> float:
        return sum(self._counts.get(metric) for metric in PROGRESS)

    @override
    def measure(self, figures: AssignmentFigures) -> None:
        for metric, value in (
            (metrics.WAITING, figures.waiting),
            (metrics.PARTITIONS, figures.partitions),
            (metrics.IN_FLIGHT, figures.tasks),
            (metrics.FULL, figures.full),
            (metrics.UNCOMMITTED, figures.uncommitted),
            (metrics.PAUSED, self._backpressure.is_full),
            (metrics.UNFINISHED, self._backpressure.count),
            (metrics.UNFINISHED_BYTES, self._backpressure.bytes),
        ):
            self._counts.set(metric, value)
        for api, dispatcher in self._dispatchers.items():
            self._counts.set(metrics.QUEUED, len(dispatcher), api)
            self._counts.set(metrics.DEFERRED, sum(state.deferred_count(api) for state in self._states), api)

    @override
    def report(self) -> None:
        log.info("stats", extra={"facts": self._counts.values()})

    # Planning

    def _plan(self, state: PartitionState, record: Record) -> None:
        """Decode a record, plan its requests, and queue each with its API."""
        self._counts.add(metrics.SNAPSHOTS)
        self._broker_clock.note(record.timestamp_ms)
        now = self._now()
        try:
            requests = self._requests(state, record, now)
        except ValueError as error:
            self._start_reject(state, record, str(error))
            return
        state.partition.track(record.offset, len(requests))
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
        """Plan a deferred snapshot again."""
        now = self._now()
        try:
            requests = None if record is None else self._planner.replan(state, record, now, api)
        except ValueError:  # another record is at its place: the topic was recreated
            requests = None
        if record is None or requests is None:
            state.lose(api, offset)
            return
        state.resume(api, offset, len(requests))
        for request in requests:
            self._dispatch(state, record, request, now)

    # Answering

    async def _answer(self, state: PartitionState, pending: PendingRequest) -> None:
        """Answer one request: make its calls, write its outcome, and finish its offsets once Kafka has that."""
        outcome = self._skipped(pending.request) or await self._caller.answer(pending.request)
        request, now = pending.answered(), self._now()
        outcome, output = self._planner.encode(request, outcome, now)
        if outcome.status == "failure":
            dead_letter = self._planner.dead_letter(pending.record, request, outcome, now)
            await self._send_to_dead_letters(request.device_id.encode(), dead_letter)
        self._counts.add(metrics.SUPERSEDED, by=state.begin_write(pending))
        if output is not None:
            await self._producer.send([output])
        self._counts.add(metrics.ANSWERS, request.enrichment, outcome.status)
        state.finish(pending)

    def _skipped(self, request: Request) -> Outcome | None:
        """The outcome of a request that needs no call."""
        if request.skipped is not None:
            return Outcome("skipped", reason=request.skipped)
        self._counts.add(metrics.PLANNED)
        return None

    def _start_reject(self, state: PartitionState, record: Record, detail: str) -> None:
        state.partition.track(record.offset, 1)
        self._backpressure.add(record.size)
        task = state.partition.spawn(self._reject(state, record, detail))
        task.add_done_callback(lambda _: self._backpressure.release(record.size))

    async def _reject(self, state: PartitionState, record: Record, detail: str) -> None:
        if self._alarm.note(failed=True):
            raise EverythingFailsError(
                f"{self._alarm.failed} of the last {self._alarm.seen} records of {self._planner.topic} could not be "
                f"decoded, the last one with: {detail}",
                UNDECODABLE,
            )
        await self._send_to_dead_letters(record.key, DeadLetter.of(record, Reason.UNDECODABLE_SNAPSHOT, detail))
        self._counts.add(metrics.REJECTED)
        state.partition.finish(record.offset)

    async def _send_to_dead_letters(self, key: bytes | None, dead_letter: DeadLetter) -> None:
        await self._producer.send([Output(self._dead_letters, shortened(key), dead_letter.encode())])
        self._counts.add(metrics.DEAD_LETTERS, dead_letter.reason)

    def _create_task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._spawn(work)
