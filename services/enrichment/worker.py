"""The main path: a snapshot is read, planned, its calls are made, the answers written, its offset committed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from contracts.record import Reason
from contracts.wire import decode_snapshot
from services.enrichment.calls.caller import Outcome
from services.enrichment.feedback import dead_letter, encoded, milliseconds
from services.enrichment.health import Pulse
from services.enrichment.inbox import Inbox
from services.enrichment.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from contracts import Application
    from contracts.plan import Request
    from services.enrichment.calls.caller import Caller
    from services.enrichment.health import Standing
    from services.enrichment.lane import Lane
    from services.enrichment.metrics import Metrics
    from services.enrichment.publisher import Publisher
    from services.enrichment.settings import EnrichmentSettings
    from services.enrichment.source import Record, Source

log = logging.getLogger(__name__)

FULL_WAIT_S = 0.5
"""How long reading waits for room before it pauses the partitions."""


@dataclass(frozen=True)
class Parts:
    """What a worker is made of."""

    application: Application
    settings: EnrichmentSettings
    source: Source
    caller: Caller
    publisher: Publisher
    counts: Metrics
    now: Callable[[], datetime]
    clock: Callable[[], float]


class Worker:
    """One member of the consumer group. `run` it until `stop`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._counts = parts.counts
        self._inbox: Inbox[tuple[Lane, Record]] = Inbox(parts.settings.in_flight)
        self._room = asyncio.Semaphore(parts.settings.in_flight)
        self._lanes = Lanes(parts.application, parts.settings, parts.counts, parts.clock)
        self._pulse = Pulse(parts.counts, parts.clock)
        self._stopping = asyncio.Event()
        self._tasks = asyncio.TaskGroup()

    def stop(self) -> None:
        """Begin nothing new; `run` returns when what is under way is finished, or the time for it is over."""
        self._stopping.set()

    def standing(self) -> Standing:
        """See `endpoints.Watched`."""
        stopping = self._stopping.is_set()
        return self._pulse.standing(self._work(), member=self._lanes.joined, stopping=stopping)

    def measure(self) -> None:
        """See `endpoints.Watched`. The lag is measured now and then by itself: it asks the consumer's thread."""
        self._counts.set(metrics.WAITING, len(self._inbox))
        self._lanes.measure()

    async def run(self) -> None:
        """Work until `stop`. Raises a WorkerError, in a group, when that is not possible any more."""
        self._parts.source.subscribe(self._lanes, asyncio.get_running_loop())
        try:
            async with self._tasks:
                polling, planning, reporting = (
                    self._tasks.create_task(endless) for endless in (self._poll(), self._plan(), self._report())
                )
                await self._stopping.wait()
                planning.cancel()
                await self._lanes.drained(self._parts.settings.stop_within)
                polling.cancel()
                reporting.cancel()
        finally:
            await self._parts.source.close()
            self._tell()

    async def _poll(self) -> None:
        """Never stops polling, or the group would take the partitions away."""
        every, last = self._parts.settings.commit_every.total_seconds(), 0.0
        while True:
            paused = self._stopping.is_set() or not await self._inbox.has_room(FULL_WAIT_S)
            due = self._parts.clock() - last >= every
            last = self._parts.clock() if due else last
            records = await self._parts.source.fetch(paused=paused, positions=self._lanes.positions() if due else {})
            self._inbox.put(self._lanes.sorted(records))
            self._counts.set(metrics.PAUSED, int(paused))
            if due:
                self._pulse.beat(self._work())

    async def _plan(self) -> None:
        while True:
            lane, record = await self._inbox.take()
            if not lane.closed:
                await self._begin(lane, record)

    async def _begin(self, lane: Lane, record: Record) -> None:
        """Decode, plan, and begin each request that is due, as soon as there is room for it."""
        self._counts.add(metrics.SNAPSHOTS)
        try:
            requests = self._due(lane, record)
        except ValueError as error:
            lane.offsets.take(record.offset, 1)
            await self._start(lane, partial(self._reject, lane, record, str(error)))
            return
        lane.offsets.take(record.offset, len(requests))
        for request in requests:
            lane.begin(request)
            await self._start(lane, partial(self._answer, lane, record, request))

    def _due(self, lane: Lane, record: Record) -> list[Request]:
        """The requests to begin. Raises ValueError for a record that is no snapshot."""
        if record.value is None:
            return []
        snapshot = decode_snapshot(record.value)
        if lane.passed(snapshot):
            self._counts.add(metrics.PASSED)
            return []
        requests, spared, stopped = lane.due(self._parts.application, snapshot, self._parts.now())
        self._counts.add(metrics.SPARED, by=spared)
        for request in stopped:
            self._counts.add(metrics.BUDGET_STOPS, request.enrichment)
        return requests

    async def _start(self, lane: Lane, work: Callable[[], Coroutine[None, None, None]]) -> None:
        await self._room.acquire()
        if lane.closed:
            self._room.release()
        else:
            lane.hold(self._tasks.create_task(work()), self._room.release)

    async def _answer(self, lane: Lane, record: Record, request: Request) -> None:
        """One request: its calls, then its feedback; the offset is finished when that is safely in Kafka."""
        outcome = await self._outcome(request)
        outcome, value = encoded(request, outcome, self._parts.now(), self._parts.application.largest_record)
        if outcome.status == "failure":
            await self._bury(record, Reason.ENRICHMENT_FAILED, f"{request.enrichment}: {outcome.reason}")
        topic, at = self._parts.application.topics.feedback, milliseconds(request.as_of)
        await self._parts.publisher.publish(topic, request.device_id.encode(), value, at)
        self._counts.add(metrics.ANSWERS, request.enrichment, outcome.status)
        lane.end(request, record.offset)

    async def _outcome(self, request: Request) -> Outcome:
        if request.skipped is not None:
            return Outcome("skipped", reason=request.skipped)
        self._counts.add(metrics.PLANNED)
        return await self._parts.caller.answer(request)

    async def _reject(self, lane: Lane, record: Record, detail: str) -> None:
        await self._bury(record, Reason.UNDECODABLE_SNAPSHOT, detail[:200])
        self._counts.add(metrics.REJECTED)
        lane.offsets.finish(record.offset)

    async def _bury(self, record: Record, reason: Reason, detail: str) -> None:
        topics = self._parts.application.topics
        letter = dead_letter(record, topics.snapshots, reason, detail)
        await self._parts.publisher.publish(topics.dead_letters, record.key, letter.encode())
        self._counts.add(metrics.DEAD_LETTERS, reason.value)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._parts.settings.stats_every.total_seconds())
            self._counts.set(metrics.LAG, await self._parts.source.lag())
            self.measure()
            self._tell()

    def _work(self) -> int:
        """What there is to do, as far as it is known."""
        return len(self._inbox) + self._lanes.in_flight + int(self._counts.get(metrics.LAG))

    def _tell(self) -> None:
        log.info("stats", extra={"facts": self._counts.values()})
