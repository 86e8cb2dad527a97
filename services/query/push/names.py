"""The names that wait for one client: keys, or windows of keys, that may have changed. No value waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from services.query.push.event import REMOVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.push.event import Reason

S = TypeVar("S")

NAME_BYTES = 1024
"""The cost of a waiting name: about 700 bytes, and as much for a key of 300."""


class NamesBudget:
    """The bytes of the names of all clients together. It calls `on_exceeded` each time that they exceed `limit`."""

    def __init__(self, limit: int, on_exceeded: Callable[[], None]) -> None:
        self.limit = limit
        self.used = 0
        self._on_exceeded = on_exceeded

    def change(self, by: int) -> None:
        """Add names, or remove them."""
        self.used += by * NAME_BYTES
        if by > 0 and self.used > self.limit:
            self._on_exceeded()


class ClientLag(NamedTuple):
    """How far a client is behind. `oldest_ms` is the time for which the oldest waiting change has been known."""

    waiting: int
    conflated: int
    """How many changes, since it connected, were followed by a later one of the same key before they were sent."""
    oldest_ms: int


class Name(NamedTuple):
    """A key; in a windowed state, a window of it, or None for the one that a subscription chose."""

    state: str
    key: str
    window_start: int | None = None


class Cause(NamedTuple):
    """Why a name waits: the partition and the offset of the record, and since when it is known."""

    partition: int
    offset: int
    at: float
    reason: Reason


class WaitingName(Generic[S]):
    """A name that waits since its first cause, with the reason of each subscription."""

    __slots__ = ("first", "number", "reasons")

    def __init__(self, first: Cause, number: int, subscription: S) -> None:
        self.first = first
        self.number = number
        self.reasons = {subscription: first.reason}


class WaitingNames(Generic[S]):
    """The names of one client, each once, in the order of their first causes.

    Beyond the limit it drops all names, and takes none until it is reopened.
    """

    def __init__(self, limit: int, clock: Callable[[], float], budget: NamesBudget) -> None:
        self._limit = limit
        self._clock = clock
        self._budget = budget
        self.waiting: dict[Name, WaitingName[S]] = {}
        """The oldest first."""
        self.newest = 0
        """The number of the last name, counted from 1."""
        self.conflated = 0
        self.has_overflowed = False

    @property
    def room(self) -> int:
        """The number of further names that may wait."""
        return self._limit - len(self.waiting)

    @property
    def oldest(self) -> int:
        """The number of the oldest name, or of the next one if none waits."""
        return next(iter(self.waiting.values())).number if self.waiting else self.newest + 1

    def add(self, subscription: S, name: Name, cause: Cause) -> None:
        """Add a name. If there is no room, all names are dropped."""
        if self.has_overflowed:
            self.conflated += 1
            return
        waiting = self.waiting.get(name)
        if waiting is None:
            self.newest += 1
            self.waiting[name] = WaitingName(cause, self.newest, subscription)
            self._budget.change(1)
            if self.newest > self._limit and len(self.waiting) > self._limit:
                self.overflow()
            return
        earlier = waiting.reasons.get(subscription)
        self.conflated += earlier is not None
        if earlier is None or earlier < cause.reason:
            waiting.reasons[subscription] = cause.reason

    def pop(self) -> tuple[Name, WaitingName[S]]:
        """Remove and return the oldest name."""
        name = next(iter(self.waiting))
        self._budget.change(-1)
        return name, self.waiting.pop(name)

    def has_removal(self, subscription: S, partition: int | None = None) -> bool:
        """Whether a removal waits for a subscription, by default of any partition: no scan finds it again."""
        return any(
            waiting.reasons.get(subscription) is REMOVED
            for waiting in self.waiting.values()
            if partition in (None, waiting.first.partition)
        )

    def withdraw(self, subscription: S, partition: int | None = None) -> int | None:
        """Remove the names of a subscription, by default of all partitions; return the smallest offset of a cause."""
        offsets = []
        for name, waiting in list(self.waiting.items()):
            if subscription not in waiting.reasons or partition not in (None, waiting.first.partition):
                continue
            offsets.append(waiting.first.offset)
            del waiting.reasons[subscription]
            if not waiting.reasons:
                del self.waiting[name]
                self._budget.change(-1)
        return min(offsets, default=None)

    def reopen(self) -> None:
        """Accept names again: the client learns that it lost some."""
        self.has_overflowed = False

    def lag(self) -> ClientLag:
        """How far the client is behind now."""
        now = self._clock()
        oldest = next(iter(self.waiting.values())).first.at if self.waiting else now
        return ClientLag(len(self.waiting), self.conflated, round((now - oldest) * 1000))

    def overflow(self) -> None:
        """Drop all names: the client must read again."""
        self.conflated += sum(len(waiting.reasons) for waiting in self.waiting.values())
        self._budget.change(-len(self.waiting))
        self.waiting.clear()
        self.has_overflowed = True
