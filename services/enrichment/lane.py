"""What a worker knows of one partition, for as long as it is assigned: the decision which requests to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.planning.admission import LastRequest, admit
from contracts.planning.plan import wanted
from services.enrichment.memory import Memory
from services.enrichment.offsets import Offsets
from services.enrichment.order import Order

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from contracts import Application
    from contracts.planning.request import Request
    from contracts.wire import Order as Version
    from contracts.wire import Snapshot
    from services.enrichment.pressure import Pressure
    from services.enrichment.source import Record
    from services.enrichment.work import Work

Identity = tuple[str, "datetime", str, str]


class Due(NamedTuple):
    """The requests to begin for a snapshot, how many need not, because one alike is known, and those that may not."""

    begin: list[Request]
    spared: int
    stopped: list[Request]
    """They are past the device's budget."""


class Lane:
    """One assignment of one partition.

    It dies with the assignment. So what finishes late finishes in a lane that nobody commits any more, and when the
    partition comes back all that was not finished is planned again.
    """

    def __init__(self, size: int, age: timedelta, clock: Callable[[], float], pressure: Pressure) -> None:
        self.offsets = Offsets()
        self.closed = False
        """No snapshot's requests begin any more: the partition is going away."""
        self.committed: int | None = None
        """The position that the broker confirmed last."""
        self.read = -1
        """The largest offset that was read."""
        self.tasks: set[asyncio.Task[None]] = set()
        self._versions: Memory[tuple[str, datetime], Version] = Memory(size, age, clock)
        self._answered: Memory[Identity, Version] = Memory(size, age, clock)
        self._begun: Memory[tuple[tuple[str, datetime], str], LastRequest] = Memory(size, age, clock)
        """The last request of each life and enrichment, which no slot tells of before it is answered."""
        self._order = Order()
        self._started: set[int] = set()
        """The unfinished offsets of which a request has begun."""
        self._pressure = pressure
        self.parked: dict[str, dict[int, int]] = {}
        """By API: the offsets whose snapshots are to be read and planned again, and how many requests wait for that."""

    def passed(self, snapshot: Snapshot) -> bool:
        """Whether this version or a later one was seen before; if not, it is seen now.

        The job publishes some snapshots again after a crash.
        """
        seen = self._versions.get(snapshot.window)
        if seen is not None and seen >= snapshot.order:
            return True
        self._versions.put(snapshot.window, snapshot.order)
        return False

    def is_latest(self, snapshot: Snapshot) -> bool:
        """Whether no later version was seen."""
        return self._versions.get(snapshot.window) == snapshot.order

    def due(self, application: Application, snapshot: Snapshot, now: datetime) -> Due:
        """What is to begin for a snapshot.

        A snapshot without requests of its own need not wait for one alike under way: that one belongs to an earlier
        offset of the same partition, which holds the contiguous prefix back until it is answered.
        """
        called_for = wanted(application, snapshot, now)
        if not called_for:
            return Due(called_for, 0, [])
        new = [request for request in called_for if not self._known(request, snapshot)]
        spared = len(called_for) - len(new)
        if not application.limited:
            return Due(new, spared, [])
        renewed = {one.enrichment: waiting for one in new if (waiting := self._waiting(one))}
        begun = {one: called for one in application.by_name if (called := self._last(snapshot.window, one, renewed))}
        new.sort(key=lambda request: request.enrichment not in renewed)  # they were paid for
        admission = admit(application, snapshot, now, new, begun)
        return Due(admission.admitted, spared, admission.over_budget)

    def begin(self, record: Record, request: Request, at: datetime | None) -> Work | None:
        """Note that a request is to be answered. None when one that still waits is to ask for this one instead.

        `at` is the time, where requests are limited: one counts as it begins, and once however often it is renewed.
        """
        waiting = self._waiting(request)
        if waiting and request.skipped is None:
            self._order.renew(waiting, record, request)
            self._pressure.add(record.size - waiting.counted, count=0)
            waiting.counted = record.size
            self._note(waiting, at)
            return None
        work = self._order.join(self, record, request)
        work.before = waiting.before if waiting else self._begun.get((request.window, request.enrichment))
        self._pressure.add(record.size)
        work.counted = record.size
        if waiting:
            self._order.replace(waiting, work)
            self._give_up(waiting)
        self._note(work, at)
        return work

    def waits(self, request: Request) -> bool:
        """Whether it would only renew one whose calls have not begun."""
        return self._waiting(request) is not None

    def park(self, api: str, offset: int) -> None:
        """Let a request go until its snapshot is planned again. Its offset stays unfinished."""
        parked = self.parked.setdefault(api, {})
        parked[offset] = parked.get(offset, 0) + 1
        self._pressure.park(1)

    def let_go(self, work: Work, api: str) -> None:
        """Park one that waits. Its earlier offsets are finished: the last one's snapshot calls for all."""
        self._order.leave(work)
        self._give_up(work)
        self._restore(work)
        *earlier, last = work.offsets
        self._started.difference_update(offset for offset in earlier if self.offsets.finish(offset))
        self.park(api, last)

    def unpark(self, api: str, offset: int, requests: int) -> None:
        """Note that a snapshot was planned again, and now calls for so many requests of the API."""
        parked = self.parked[api]
        pieces = parked.pop(offset)
        if not parked:
            del self.parked[api]
        self._pressure.park(-pieces)
        if self.offsets.divide_anew(offset, requests - pieces):
            self._started.discard(offset)

    def superseded(self, snapshot: Snapshot) -> bool:
        """Whether a later version was seen: that one renewed, or calls for, all that is still to be asked."""
        seen = self._versions.get(snapshot.window)
        return seen is not None and seen > snapshot.order

    def overtake(self, work: Work) -> int:
        """Give up the earlier requests whose answers cannot count once this one is written, and say how many."""
        earlier = self._order.overtake(work)
        for one in earlier:
            self._give_up(one)
        return len(earlier)

    def end(self, work: Work) -> None:
        """Note that a request's answer is safely in Kafka: with it a piece of each of its offsets is finished."""
        self._order.leave(work)
        self._pressure.ease(work.counted)
        self._answered.put(work.request.identity, work.request.order)
        self._started.difference_update(offset for offset in work.offsets if self.offsets.finish(offset))

    def may_begin(self, work: Work) -> bool:
        """Whether its calls may begin. In a partition that goes away, only where others of its snapshot have begun.

        The answers of those would be asked for again with it.
        """
        return not work.over and (not self.closed or not self._started.isdisjoint(work.offsets))

    def start(self, work: Work, task: asyncio.Task[None]) -> None:
        """Note that its calls begin, in this task. Who begins it takes it from `tasks` when it is done."""
        work.task = task
        self._started.update(work.offsets)
        self.tasks.add(task)

    def hold(self, task: asyncio.Task[None]) -> None:
        """Keep a task until it is done."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def abandon(self) -> int:
        """Give up all that is under way or waits, and say how many requests that were."""
        self.closed = True
        left = list(self._order)
        for work in left:
            self._order.leave(work)
            self._give_up(work)
        for task in self.tasks:
            task.cancel()
        parked = sum(sum(pieces.values()) for pieces in self.parked.values())
        self._pressure.park(-parked)
        self.parked.clear()
        return len(left) + parked

    def _give_up(self, work: Work) -> None:
        self._pressure.ease(work.counted)
        if work.task is not None:
            work.task.cancel()

    def _waiting(self, request: Request) -> Work | None:
        return self._order.waiting(request.device_id, request.first_seen, request.enrichment)

    def _last(self, life: tuple[str, datetime], enrichment: str, renewed: Mapping[str, Work]) -> LastRequest | None:
        """The last request of an enrichment, or the one before where it is about to be renewed: it made no call yet."""
        if enrichment in renewed:
            return renewed[enrichment].before
        return self._begun.get((life, enrichment))

    def _note(self, work: Work, at: datetime | None) -> None:
        """Count a request. What is skipped counts for nothing, and neither does the one whose place it takes."""
        if at is None:
            return
        if work.request.skipped is not None:
            self._restore(work)
        else:
            key = (work.request.window, work.request.enrichment)
            self._begun.put(key, LastRequest(at, work.request.spent or 0))

    def _restore(self, work: Work) -> None:
        key = (work.request.window, work.request.enrichment)
        if work.before is None:
            self._begun.forget(key)
        else:
            self._begun.put(key, work.before)

    def _known(self, request: Request, snapshot: Snapshot) -> bool:
        """Whether a request alike is under way, or was answered and the state does not show that yet.

        Once the state shows an answer of that version or a later one, the earlier answer was merged or superseded. If
        the snapshot calls for the request all the same, it does so anew: the answer is stale, or the inputs are back.
        """
        identity = request.identity
        if self._order.is_under_way(request):  # one that waits is renewed: let go, it is by its latest offset
            return self._waiting(request) is None
        answered = self._answered.get(identity)
        if answered is None:
            return False
        shown = snapshot.enrichments.get(request.enrichment)
        if shown is None or shown.order < answered:
            return True
        self._answered.forget(identity)
        return False
