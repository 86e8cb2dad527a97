"""What a worker knows of one partition, for as long as it is assigned: the decision which requests to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.budget import Called, afford
from contracts.plan import wanted
from services.enrichment.memory import Memory
from services.enrichment.offsets import Offsets

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from contracts import Application
    from contracts.plan import Request
    from contracts.wire import Snapshot

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

    def __init__(self, size: int, age: timedelta, clock: Callable[[], float]) -> None:
        self.offsets = Offsets()
        self.closed = False
        """No request begins any more: the partition is going away."""
        self.read = -1
        """The largest offset that was read."""
        self.tasks: set[asyncio.Task[None]] = set()
        self._versions: Memory[tuple[str, datetime], int] = Memory(size, age, clock)
        self._answered: Memory[Identity, int] = Memory(size, age, clock)
        self._under_way: set[Identity] = set()
        self._begun: Memory[tuple[tuple[str, datetime], str], Called] = Memory(size, age, clock)
        """The last request of each life and enrichment, which no slot tells of before it is answered."""

    def passed(self, snapshot: Snapshot) -> bool:
        """Whether this version or a later one was seen before; if not, it is seen now.

        The job publishes some snapshots again after a crash.
        """
        seen = self._versions.get(snapshot.life)
        if seen is not None and seen >= snapshot.version:
            return True
        self._versions.put(snapshot.life, snapshot.version)
        return False

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
        begun = {one: called for one in application.by_name if (called := self._begun.get((snapshot.life, one)))}
        afforded = afford(application, snapshot, now, new, begun)
        for request in afforded.begin:
            if request.skipped is None:
                self._begun.put((snapshot.life, request.enrichment), Called(now, request.spent or 0))
        return Due(afforded.begin, spared, afforded.stopped)

    def begin(self, request: Request) -> None:
        """Note that a request is under way."""
        self._under_way.add(request.identity)

    def end(self, request: Request, offset: int) -> None:
        """Note that a request's answer is safely in Kafka: with it a piece of its offset is finished."""
        self._under_way.discard(request.identity)
        self._answered.put(request.identity, request.version)
        self.offsets.finish(offset)

    def hold(self, task: asyncio.Task[None], then: Callable[[], None]) -> None:
        """Keep a task until it is done, and do something then."""

        def done(task: asyncio.Task[None]) -> None:
            self.tasks.discard(task)
            then()

        self.tasks.add(task)
        task.add_done_callback(done)

    def abandon(self) -> int:
        """Give up all that is under way, and say how many tasks that were."""
        self.closed = True
        for task in self.tasks:
            task.cancel()
        return len(self.tasks)

    def _known(self, request: Request, snapshot: Snapshot) -> bool:
        """Whether a request alike is under way, or was answered and the state does not show that yet.

        Once the state shows an answer of that version or a later one, the earlier answer was merged or superseded. If
        the snapshot calls for the request all the same, it does so anew: the answer is stale, or the inputs are back.
        """
        identity = request.identity
        if identity in self._under_way:
            return True
        answered = self._answered.get(identity)
        if answered is None:
            return False
        shown = snapshot.enrichments.get(request.enrichment)
        if shown is None or shown.version < answered:
            return True
        self._answered.forget(identity)
        return False
