"""The queue to one client: the latest notification of each key, or window of a key, bounded in keys and bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.push.notification import Notification

S = TypeVar("S")
SLOT_BYTES = 1024
"""The cost of a queued key without its value: about 700 bytes, and as much for a key of 300."""


class QueueBudget:
    """The bytes in all queues together. It calls `on_exceeded` each time that they grow beyond `limit`."""

    def __init__(self, limit: int, on_exceeded: Callable[[], None]) -> None:
        self.limit = limit
        self.used = 0
        self._on_exceeded = on_exceeded

    def change(self, by: int) -> None:
        """Add bytes, or remove them."""
        self.used += by
        if by > 0 and self.used > self.limit:
            self._on_exceeded()


class ClientLag(NamedTuple):
    """How far a client is behind. `oldest_ms` is the time for which the oldest queued change has been known."""

    waiting: int
    conflated: int
    """How many changes, since it connected, were replaced by a later one of the same key before they were sent."""
    oldest_ms: int


class Delivery(NamedTuple, Generic[S]):
    """A notification for some subscriptions of one client."""

    notification: Notification
    subscriptions: list[S]


@dataclass(slots=True)
class _Slot(Generic[S]):
    """A queued key: the latest notification for each subscription, and when the first was known."""

    at: float
    number: int
    size: int = 0
    notifications: dict[S, Notification] = field(default_factory=dict)


class SendQueue(Generic[S]):
    """Beyond a bound it drops everything, and takes nothing until it is reopened.

    A value that is queued for several clients counts in each queue, though it is in memory once.
    """

    def __init__(
        self, keys_max: int, bytes_max: int, clock: Callable[[], float], budget: QueueBudget | None = None
    ) -> None:
        self._budget = budget
        self._counted = 0
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._clock = clock
        self._slots: dict[tuple[str, str, int | None], _Slot[S]] = {}
        self._bytes = 0
        self.newest = 0
        """The number of the last slot, counted from 1."""
        self.conflated = 0
        self.has_overflowed = False

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """The bytes of the queued values."""
        return self._bytes

    @property
    def oldest(self) -> int:
        """The number of the oldest slot, or of the next one if the queue is empty."""
        return next(iter(self._slots.values())).number if self._slots else self.newest + 1

    def put(self, subscription: S, notification: Notification) -> None:
        """Queue a notification. If there is no room, everything is dropped."""
        if self.has_overflowed:
            self.conflated += 1
            return
        name = notification.state, notification.key, notification.window_start
        slot = self._slots.get(name)
        if slot is None:
            self.newest += 1
            slot = self._slots[name] = _Slot(notification.at, self.newest)
        self.conflated += subscription in slot.notifications
        slot.notifications[subscription] = notification
        self._bytes += notification.size - slot.size
        slot.size = notification.size
        if len(self._slots) > self._keys_max or (self._bytes > self._bytes_max and len(self._slots) > 1):
            self.overflow()
        self._count()

    def take(self, bytes_wanted: int) -> list[Delivery[S]]:
        """Remove and return the oldest deliveries, of about so many bytes."""
        taken: list[Delivery[S]] = []
        size = 0
        while self._slots and size < bytes_wanted:
            slot = self._slots.pop(next(iter(self._slots)))
            deliveries: dict[int, Delivery[S]] = {}
            for subscription, one in slot.notifications.items():
                deliveries.setdefault(id(one), Delivery(one, [])).subscriptions.append(subscription)
            taken += deliveries.values()
            size += slot.size
            self._bytes -= slot.size
        self._count()
        return taken

    def withdraw(self, subscription: S) -> None:
        """Remove everything for this subscription."""
        for name, slot in list(self._slots.items()):
            slot.notifications.pop(subscription, None)
            if not slot.notifications:
                self._bytes -= self._slots.pop(name).size
        self._count()

    def reopen(self) -> None:
        """Accept notifications again: the client learns that it lost some."""
        self.has_overflowed = False

    def lag(self) -> ClientLag:
        """How far the client is behind now."""
        oldest = next(iter(self._slots.values())).at if self._slots else self._clock()
        return ClientLag(len(self._slots), self.conflated, round((self._clock() - oldest) * 1000))

    def overflow(self) -> None:
        """Drop everything: the client must read again."""
        self.conflated += sum(len(slot.notifications) for slot in self._slots.values())
        self._slots.clear()
        self._bytes = 0
        self.has_overflowed = True
        self._count()

    def _count(self) -> None:
        """Report the size of this queue to the budget."""
        size = self._bytes + SLOT_BYTES * len(self._slots)
        changed, self._counted = size - self._counted, size
        if self._budget is not None:
            self._budget.change(changed)
