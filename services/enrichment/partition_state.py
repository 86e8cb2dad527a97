"""The state of one assigned partition: its versions, and its unanswered requests. Nothing else changes it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from contracts.planning.admission import LastRequest, admit
from contracts.planning.plan import answered, is_expired, wanted
from services.enrichment.in_flight import InFlight
from services.enrichment.recent_map import RecentMap

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from contracts import Application
    from contracts.planning.request import Request
    from contracts.records.record import Record
    from contracts.wire import Order, Snapshot
    from services.enrichment.in_flight import PendingRequest
    from services.runtime.broker_clock import BrokerClock
    from services.runtime.worker.partition import AssignedPartition

Identity = tuple[str, "datetime", str, str]


class Planned(NamedTuple):
    """The plan of one snapshot: the requests to start, how many were suppressed, and those that are dropped."""

    requests: list[Request]
    suppressed: int
    over_budget: list[Request]
    expired: Sequence[Request] = ()
    """The requests for which the window has ended, without those that need no call."""
    withdrawn: int = 0
    """The number of queued requests of earlier snapshots that are dropped."""


class PartitionState:
    """One assignment of one partition.

    It ends with the assignment. A request that finishes later finishes in a state that is never committed, and when
    the partition is assigned again, everything unfinished is planned again.
    """

    def __init__(
        self,
        partition: AssignedPartition,
        size: int,
        age: timedelta,
        clock: Callable[[], float],
        broker_clock: BrokerClock,
    ) -> None:
        self.partition = partition
        self._broker_clock = broker_clock
        self._versions: RecentMap[tuple[str, datetime], Order] = RecentMap(size, age, clock)
        self._answered: RecentMap[Identity, Order] = RecentMap(size, age, clock)
        self._begun: RecentMap[tuple[tuple[str, datetime], str], LastRequest] = RecentMap(size, age, clock)
        """The last request of each window and enrichment. A slot shows it only after its answer."""
        self._in_flight = InFlight()
        self._started: set[int] = set()
        """The unfinished offsets with at least one request that has started."""
        self._backpressure = partition.backpressure
        self._deferred: dict[str, dict[int, int]] = {}
        """The offsets to read and plan again, with the number of deferred requests of each, by API."""
        self._lost: set[str] = set()
        """The APIs of deferred requests whose snapshots the topic has lost: until the assignment ends, their copies are
        planned again."""

    # Planning

    def has_seen(self, snapshot: Snapshot) -> bool:
        """Return whether this version or a later one was seen before, and note the version.

        The job publishes some snapshots again after a crash.
        """
        seen = self._versions.get(snapshot.window)
        if seen is not None and seen >= snapshot.order:
            return True
        self._versions.put(snapshot.window, snapshot.order)
        return False

    def is_latest(self, snapshot: Snapshot) -> bool:
        """Return whether this is the latest version that was seen."""
        return self._versions.get(snapshot.window) == snapshot.order

    def is_superseded(self, snapshot: Snapshot) -> bool:
        """Return whether a later version was seen. Its plan contains all requests that are still necessary."""
        seen = self._versions.get(snapshot.window)
        return seen is not None and seen > snapshot.order

    def plan(self, application: Application, snapshot: Snapshot, now: datetime) -> Planned:
        """Return the requests to start for a snapshot.

        A snapshot does not wait for requests that it shares with an earlier one: those belong to an earlier offset of
        the same partition, which is not committed before they are answered.
        """
        broker_now = self._broker_clock.now()
        planned = wanted(application, snapshot, now, broker_now)
        new = [request for request in planned if not self._is_suppressed(request, snapshot)]
        withdrawn = self._withdraw(application, snapshot, now, planned, new)
        if not planned:
            is_over = is_expired(application, snapshot, min(now, broker_now))
            missed = self._missed(application, snapshot, now) if is_over else ()
            return Planned(planned, 0, [], missed, withdrawn)
        for request in planned if len(new) < len(planned) else ():
            self._renew(request, snapshot)
        suppressed = len(planned) - len(new)
        if not application.limited:
            return Planned(new, suppressed, [], withdrawn=withdrawn)
        queued = {one.enrichment: pending for one in new if (pending := self._in_flight.queued(one))}
        begun = {one: called for one in application.by_name if (called := self._last(snapshot.window, one, queued))}
        new.sort(key=lambda request: request.enrichment not in queued)  # the budget has counted the queued ones
        admission = admit(application, snapshot, now, new, begun)
        return Planned(admission.admitted, suppressed, admission.over_budget, withdrawn=withdrawn)

    def add(self, record: Record, request: Request, at: datetime | None) -> PendingRequest | None:
        """Add a planned request. Return None if it was coalesced with a queued one.

        `at` is the present time if the application has a budget or an interval: both count a request when it is added,
        and a coalesced one only once.
        """
        queued = self._in_flight.queued(request)
        if queued and request.skipped is None:
            earlier = self._in_flight.coalesce(queued, record, request)
            if not self._started.isdisjoint(earlier):
                self._started.add(record.offset)
            self._finish_offsets(earlier)
            self._backpressure.add(record.size - queued.counted_bytes, count=0)
            queued.counted_bytes = record.size
            self._count(queued, at)
            return None
        pending = self._in_flight.add(record, request)
        pending.previous = queued.previous if queued else self._begun.get((request.window, request.enrichment))
        self._backpressure.add(record.size)
        pending.counted_bytes = record.size
        if queued:
            self._in_flight.replace(queued, pending)
            self._cancel(queued)
        self._count(pending, at)
        return pending

    def has_queued(self, request: Request) -> bool:
        """Return whether the request would be coalesced with a queued one."""
        return self._in_flight.queued(request) is not None

    def has(self, request: Request) -> bool:
        """Return whether a request of the same identity is queued or running, or was answered."""
        return self._in_flight.contains(request) or self._answered.get(request.identity) is not None

    # Answering

    def can_start(self, pending: PendingRequest) -> bool:
        """Return whether the calls of a request may start.

        In a closed partition they may only if other requests of the same snapshot have started: without this one, the
        next worker would repeat those.
        """
        return not pending.is_done and (not self.partition.is_closing or not self._started.isdisjoint(pending.offsets))

    def start(self, pending: PendingRequest, task: asyncio.Task[None]) -> None:
        """Note that the calls of a request start in this task."""
        pending.task = task
        self._started.update(pending.offsets)
        before, pending.counted_bytes = pending.counted_bytes, pending.shorten()
        self._backpressure.release(before - pending.counted_bytes, count=0)

    def begin_write(self, pending: PendingRequest) -> int:
        """Note that the answer is about to be written: it supersedes the earlier ones. Return how many those are."""
        superseded = self._in_flight.supersede_earlier(pending)
        for one in superseded:
            self._cancel(one)
        pending.is_written = True
        return len(superseded)

    def finish(self, pending: PendingRequest) -> None:
        """Note that Kafka has acknowledged the answer: one part of each of its offsets is finished."""
        self._in_flight.remove(pending)
        self._backpressure.release(pending.counted_bytes)
        self._answered.put(pending.request.identity, pending.request.order)
        self._finish_offsets(pending.offsets)

    # Deferring

    def defer(self, api: str, offset: int) -> None:
        """Drop a request until its snapshot is planned again. The offset stays unfinished."""
        deferred = self._deferred.setdefault(api, {})
        deferred[offset] = deferred.get(offset, 0) + 1
        self._backpressure.add_deferred(1)

    def defer_queued(self, api: str, pending: PendingRequest) -> None:
        """Defer a queued request. Call `sort_deferred` afterwards."""
        self._drop(pending)
        self.defer(api, pending.record.offset)

    def sort_deferred(self, api: str) -> None:
        """Sort the deferred offsets of an API: queued requests may be older than those that were deferred before."""
        self._deferred[api] = dict(sorted(self._deferred[api].items()))

    def has_deferred(self, api: str) -> bool:
        """Return whether requests of this API are deferred."""
        return api in self._deferred

    def deferred_offsets(self, api: str, most: int | None = None) -> list[int]:
        """Return the first offsets with deferred requests of this API, or all of them."""
        return list(islice(self._deferred.get(api, ()), most))

    def deferred_count(self, api: str) -> int:
        """Return how many snapshots are to be planned again for this API."""
        return len(self._deferred.get(api, ()))

    def resume(self, api: str, offset: int, requests: int) -> None:
        """Note that a deferred snapshot was planned again, with this many requests of the API."""
        deferred = self._deferred[api]
        before = deferred.pop(offset)
        if not deferred:
            del self._deferred[api]
        self._backpressure.add_deferred(-before)
        if self.partition.add_parts(offset, requests - before):
            self._started.discard(offset)

    def lose(self, api: str, offset: int) -> None:
        """Note that the topic has lost a deferred snapshot: it expired, or a later version or a copy follows."""
        self._lost.add(api)
        self.resume(api, offset, 0)

    def may_have_lost(self, api: str) -> bool:
        """Return whether a copy of a snapshot may be the only one with deferred requests of this API."""
        return api in self._lost or api in self._deferred

    # Ending

    def abandon(self) -> int:
        """Cancel everything that is running, queued or deferred. Return how many requests that were."""
        pending = list(self._in_flight)
        for one in pending:
            self._in_flight.remove(one)
            self._cancel(one)
        deferred = sum(sum(offsets.values()) for offsets in self._deferred.values())
        self._backpressure.add_deferred(-deferred)
        self._deferred.clear()
        return len(pending) + deferred

    def _drop(self, pending: PendingRequest) -> None:
        """Remove a queued request, which made no call."""
        self._in_flight.remove(pending)
        self._cancel(pending)
        self._uncount(pending)

    def _cancel(self, pending: PendingRequest) -> None:
        self._backpressure.release(pending.counted_bytes)
        if pending.task is not None:
            pending.task.cancel()
        elif pending.dispatcher is not None:  # which would keep the record and this state until its API is back
            pending.dispatcher.discard(pending)

    def _finish_offsets(self, offsets: list[int]) -> None:
        self._started.difference_update(offset for offset in offsets if self.partition.finish(offset))

    def _last(
        self, window: tuple[str, datetime], enrichment: str, queued: Mapping[str, PendingRequest]
    ) -> LastRequest | None:
        """The last request of an enrichment; not a queued one, which is about to be coalesced and made no call yet."""
        if enrichment in queued:
            return queued[enrichment].previous
        return self._begun.get((window, enrichment))

    def _count(self, pending: PendingRequest, at: datetime | None) -> None:
        """Count a request for the budget. A skipped one costs nothing, and the one that it replaced neither."""
        if at is None:
            return
        if pending.request.skipped is not None:
            self._uncount(pending)
        else:
            key = (pending.request.window, pending.request.enrichment)
            self._begun.put(key, LastRequest(at, pending.request.spent or 0))

    def _uncount(self, pending: PendingRequest) -> None:
        key = (pending.request.window, pending.request.enrichment)
        if pending.previous is None:
            self._begun.forget(key)
        else:
            self._begun.put(key, pending.previous)

    def _missed(self, application: Application, snapshot: Snapshot, now: datetime) -> list[Request]:
        """Return the requests that a snapshot would call for if its window lived."""
        called_for = wanted(application, snapshot, now, snapshot.first_seen)
        return [one for one in called_for if one.skipped is None and not self._is_suppressed(one, snapshot)]

    def _withdraw(
        self, application: Application, snapshot: Snapshot, now: datetime, planned: list[Request], new: list[Request]
    ) -> int:
        """Drop the queued requests of earlier snapshots where the answer to the present inputs is known; count them.

        That is where the slot has it, or the plan contains a request that is answered already. Where the plan has none
        for another reason, such as a dependency without a value, the queued one stays.
        """
        requested = {request.enrichment for request in new}
        queued = {
            name: pending
            for name in application.by_name
            if name not in requested
            and (pending := self._in_flight.queued_at((*snapshot.window, name)))
            and pending.request.order < snapshot.order
        }
        if not queued:  # as for most snapshots
            return 0
        known = answered(application, snapshot, now) | {request.enrichment for request in planned}
        withdrawn = queued.keys() & known
        for name in withdrawn:
            self._drop(queued[name])
            self._finish_offsets(queued[name].offsets)
        return len(withdrawn)

    def _renew(self, request: Request, snapshot: Snapshot) -> None:
        """Have the same request, which runs, replace the answer in the slot, which would replace its own."""
        slot = snapshot.enrichments.get(request.enrichment)
        if slot is None or not self._in_flight.is_running(request):
            return
        running = self._in_flight.running(request)
        if running.request.order <= slot.order < request.order and not running.is_answered:
            self._in_flight.renew(running, request)

    def _is_suppressed(self, request: Request, snapshot: Snapshot) -> bool:
        """Return whether the same request is running, or was answered and the state does not have the answer yet.

        Once the state shows an answer of that version or a later one, the earlier answer was merged or superseded. If
        the plan still contains the request, it is necessary: the answer is stale, or the inputs have come back.
        """
        identity, slot = request.identity, snapshot.enrichments.get(request.enrichment)
        if self._in_flight.contains(request):  # a queued one is coalesced, so that it is deferred at its latest offset
            if not self._in_flight.is_running(request):
                return False
            running = self._in_flight.running(request)
            return slot is None or slot.order < running.request.order or not running.is_answered
        answered = self._answered.get(identity)
        if answered is None:
            return False
        if slot is None or slot.order < answered:
            return True
        self._answered.forget(identity)
        return False
