"""The main path: a snapshot is read, planned, its calls are made, the answers written, its offset committed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from contracts.types.key import shortened
from contracts.wire import decode_snapshot
from services.enrichment.alarms import Alarms
from services.enrichment.calls.caller import Outcome
from services.enrichment.feedback import encoded, failed, milliseconds, undecodable
from services.enrichment.gate import Gate
from services.enrichment.health import Pulse
from services.enrichment.inbox import Inbox
from services.enrichment.lane import Due, Lane
from services.enrichment.lanes import Lanes
from services.enrichment.parking import Parking
from services.enrichment.pressure import Pressure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Application
    from contracts.metrics.counts import Counts
    from contracts.planning.request import Request
    from contracts.wire import DeadLetter
    from services.enrichment.availability import Availability
    from services.enrichment.calls.caller import Answering
    from services.enrichment.health import Standing
    from services.enrichment.publisher import Publisher
    from services.enrichment.rereader import Rereader
    from services.enrichment.settings import EnrichmentSettings
    from services.enrichment.source import Record, Source
    from services.enrichment.work import Work

log = logging.getLogger(__name__)

FULL_WAIT_S = 0.5
"""How long reading waits for room before it pauses the partitions."""
AT_ONCE = 256
"""How many snapshots are looked at before the calls get their turn."""


@dataclass(frozen=True)
class Parts:
    """What a worker is made of."""

    application: Application
    settings: EnrichmentSettings
    source: Source
    rereader: Rereader
    caller: Answering
    availability: Availability
    publisher: Publisher
    counts: Counts
    now: Callable[[], datetime]
    clock: Callable[[], float]


class Worker:
    """One member of the consumer group. `run` it until `stop`."""

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self._parts = parts
        self._counts = parts.counts
        self._inbox: Inbox[tuple[Lane, Record]] = Inbox()
        self._pressure = Pressure(settings.unfinished, settings.unfinished_bytes, settings.parked)
        self._lanes = Lanes(parts.application, settings, parts.counts, parts.clock, self._pressure)
        self._alarms = Alarms(parts.application, settings)
        self._pulse = Pulse(parts.counts, parts.clock)
        self._stopping = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._gates = {
            api: Gate(api, settings.in_flight, parts.availability, self._tasks.create_task, self._answer)
            for api in {one.api for one in parts.application.enrichments}
        }
        self._parkings = {api: self._parking(gate) for api, gate in self._gates.items()}

    def _parking(self, gate: Gate) -> Parking:
        parts, start = self._parts, self._tasks.create_task
        return Parking(
            gate, parts.availability, self._lanes, self._pressure, parts.rereader, start=start, again=self._again
        )

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
        self._counts.set(metrics.UNFINISHED, self._pressure.count)
        self._counts.set(metrics.UNFINISHED_BYTES, self._pressure.bytes)
        for api, gate in self._gates.items():
            self._counts.set(metrics.HELD, len(gate), api)
            self._counts.set(metrics.PARKED, sum(len(lane.parked[api]) for _, lane in self._lanes.parked(api)), api)
        self._lanes.measure()

    async def run(self) -> None:
        """Work until `stop`. Raises a WorkerError, in a group, when that is not possible any more."""
        self._parts.source.subscribe(self._lanes, asyncio.get_running_loop())
        try:
            async with self._tasks:
                await self._until_stopped()
        finally:
            await self._parts.source.close()
            self._tell()

    async def _until_stopped(self) -> None:
        endless = [self._tasks.create_task(one) for one in (self._plan(), self._poll(), self._report())]
        try:
            await self._stopping.wait()
            endless.pop(0).cancel()
            await self._lanes.drained(self._parts.settings.stop_within)
            await self._lanes.all_committed(self._parts.settings.drain)
        finally:
            for gate in self._gates.values():
                gate.close()  # nothing may take the place of what ends
            for parking in self._parkings.values():
                parking.close()
            self._lanes.abandon()
            for task in endless:
                task.cancel()

    async def _poll(self) -> None:
        """Never stops polling, or the group would take the partitions away."""
        every, last = self._parts.settings.commit_every.total_seconds(), 0.0
        while True:
            has_room = await self._pressure.has_room(FULL_WAIT_S)
            paused = self._stopping.is_set() or not has_room
            if not has_room:
                self._relieve()
            due = self._parts.clock() - last >= every
            last = self._parts.clock() if due else last
            full, positions = self._lanes.full(), self._lanes.positions() if due else {}
            records = await self._parts.source.fetch(paused=paused, full=full, positions=positions)
            self._receive(self._lanes.sorted(records))
            self._counts.set(metrics.PAUSED, int(paused))
            if due:
                self._pulse.beat(self._work())

    def _relieve(self) -> None:
        for parking in self._parkings.values():
            parking.relieve()

    def _receive(self, records: list[tuple[Lane, Record]]) -> None:
        self._pressure.add(sum(record.size for _, record in records), len(records))
        self._inbox.put(records)

    async def _plan(self) -> None:
        while True:
            for lane, record in await self._inbox.take(AT_ONCE):
                self._pressure.ease(record.size)
                if not lane.closed:
                    self._begin(lane, record)
            await asyncio.sleep(0)

    def _begin(self, lane: Lane, record: Record) -> None:
        """Decode, plan, and line up each request that is due with those of its API. Nothing here waits."""
        self._counts.add(metrics.SNAPSHOTS)
        now = self._parts.now()
        try:
            requests = self._due(lane, record, now)
        except ValueError as error:
            lane.offsets.take(record.offset, 1)
            self._pressure.add(record.size)
            task = self._tasks.create_task(self._reject(lane, record, str(error)))
            task.add_done_callback(lambda _: self._pressure.ease(record.size))
            lane.hold(task)
            return
        lane.offsets.take(record.offset, len(requests))
        for request in requests:
            if not self._parkings[self._api(request)].takes(lane, record.offset, request):
                self._line_up(lane, record, request, now)

    def _line_up(self, lane: Lane, record: Record, request: Request, now: datetime) -> None:
        if work := lane.begin(record, request, now if self._parts.application.limited else None):
            self._gates[self._api(request)].add(work)
        else:
            self._counts.add(metrics.RENEWED)

    def _again(self, api: str, lane: Lane, offset: int, record: Record | None) -> None:
        """Plan a snapshot that was parked. One that the topic keeps no more is superseded, or its life is over."""
        if record is None:
            lane.unpark(api, offset, 0)
            return
        now, snapshot = self._parts.now(), decode_snapshot(record.value or b"")
        is_past = lane.superseded(snapshot)
        due = Due([], 0, []) if is_past else lane.due(self._parts.application, snapshot, now)
        requests = [request for request in due.begin if self._api(request) == api]
        self._count_stops([request for request in due.stopped if self._api(request) == api])
        lane.unpark(api, offset, len(requests))
        for request in requests:
            self._line_up(lane, record, request, now)

    def _api(self, request: Request) -> str:
        return self._parts.application.by_name[request.enrichment].api

    def _due(self, lane: Lane, record: Record, now: datetime) -> list[Request]:
        """The requests to begin. Raises ValueError for a record that is no snapshot."""
        if record.value is None:
            return []
        snapshot = decode_snapshot(record.value)
        self._alarms.decoded()
        passed = lane.passed(snapshot)
        if passed:
            self._counts.add(metrics.PASSED)
            if not lane.is_latest(snapshot):
                return []
        requests, spared, stopped = lane.due(self._parts.application, snapshot, now)
        if passed:  # compaction may leave only this copy of what waits or is parked
            return [one for one in requests if lane.waits(one) or self._api(one) in lane.parked]
        if spared or stopped:  # there is a snapshot for each record, and mostly neither
            self._counts.add(metrics.SPARED, by=spared)
            self._count_stops(stopped)
        for request in requests:
            if request.order > snapshot.order:
                self._counts.add(metrics.FORGED, request.enrichment)
        return requests

    def _count_stops(self, stopped: list[Request]) -> None:
        for request in stopped:
            self._counts.add(metrics.BUDGET_STOPS, request.enrichment)

    async def _answer(self, work: Work) -> None:
        """One request: its calls, then its feedback; its offsets are finished when that is safely in Kafka."""
        request, topics = work.request, self._parts.application.topics
        outcome = self._skipped(request) or await self._parts.caller.answer(request)
        outcome, value = encoded(request, outcome, self._parts.now(), self._parts.application.largest_record)
        self._alarms.ended(request, outcome)
        if outcome.status == "failure":
            await self._bury(request.device_id.encode(), failed(work.record, topics.snapshots, request, outcome))
        self._counts.add(metrics.OVERTAKEN, by=work.lane.overtake(work))
        work.written = True
        key, at = request.device_id.encode(), milliseconds(request.as_of)
        await self._parts.publisher.publish(topics.feedback, key, value, at)
        self._counts.add(metrics.ANSWERS, request.enrichment, outcome.status)
        work.lane.end(work)

    def _skipped(self, request: Request) -> Outcome | None:
        """The outcome of one that takes no call."""
        if request.skipped is not None:
            return Outcome("skipped", reason=request.skipped)
        self._counts.add(metrics.PLANNED)
        return None

    async def _reject(self, lane: Lane, record: Record, detail: str) -> None:
        self._alarms.undecodable(detail)
        await self._bury(record.key, undecodable(record, self._parts.application.topics.snapshots, detail))
        self._counts.add(metrics.REJECTED)
        lane.offsets.finish(record.offset)

    async def _bury(self, key: bytes | None, letter: DeadLetter) -> None:
        topic = self._parts.application.topics.dead_letters
        await self._parts.publisher.publish(topic, shortened(key), letter.encode())
        self._counts.add(metrics.DEAD_LETTERS, letter.reason)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._parts.settings.stats_every.total_seconds())
            self._counts.set(metrics.LAG, await self._parts.source.lag())
            self.measure()
            self._tell()

    def _work(self) -> int:
        """What there is to do, as far as it is known."""
        return self._pressure.count + self._pressure.parked + int(self._counts.get(metrics.LAG))

    def _tell(self) -> None:
        log.info("stats", extra={"facts": self._counts.values()})
