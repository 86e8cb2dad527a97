"""What waits for one client: of each key the latest alone, and no more than so much."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.push.notification import Notification

S = TypeVar("S")
SLOT_BYTES = 1024
"""What a key that waits costs beside its value: about 700 bytes, and as much as that in a key of 300."""


class QueueBudget:
    """Bytes that wait for all clients together. Each time that there are more than `most`, it calls `exceeded`."""

    def __init__(self, most: int, exceeded: Callable[[], None]) -> None:
        self.most = most
        self.used = 0
        self._exceeded = exceeded

    def change(self, by: int) -> None:
        """So many more wait, or less."""
        self.used += by
        if by > 0 and self.used > self.most:
            self._exceeded()


class ClientLag(NamedTuple):
    """How far a client is behind. `oldest_ms` is how long ago the oldest of what waits was known here."""

    waiting: int
    conflated: int
    """How many changes it never gets, because a later one of the same key took their place, since it connected."""
    oldest_ms: int


class Delivery(NamedTuple, Generic[S]):
    """A notice, and the client's subscriptions that it is for."""

    notice: Notification
    subscriptions: list[S]


@dataclass
class _Slot(Generic[S]):
    """What waits of one key: as a rule, the same notice for all subscriptions."""

    at: float
    number: int
    size: int = 0
    notices: dict[S, Notification] = field(default_factory=dict)


class SendQueue(Generic[S]):
    """Bounded in keys and in bytes of their values. Over a bound all is dropped and `spilled` is set, until taken.

    Bytes of a value that waits for several clients are counted in each, though they are there once.
    """

    def __init__(
        self, most_keys: int, most_bytes: int, clock: Callable[[], float], budget: QueueBudget | None = None
    ) -> None:
        self._budget = budget
        self._counted = 0
        self._most_keys = most_keys
        self._most_bytes = most_bytes
        self._clock = clock
        self._slots: dict[tuple[str, str], _Slot[S]] = {}
        self._bytes = 0
        self.newest = 0
        """The number of the slot that was put last; they are counted from 1."""
        self.conflated = 0
        self.spilled = False

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """The bytes of what waits."""
        return self._bytes

    @property
    def oldest(self) -> int:
        """The number of the slot that waits longest; of the next one, when none does."""
        return next(iter(self._slots.values())).number if self._slots else self.newest + 1

    def put(self, subscription: S, notice: Notification) -> None:
        """Let it wait. If there is no room, all that waits is lost."""
        if self.spilled:
            self.conflated += 1
            return
        place = notice.state, notice.key
        slot = self._slots.get(place)
        if slot is None:
            self.newest += 1
            slot = self._slots[place] = _Slot(notice.at, self.newest)
        self.conflated += subscription in slot.notices
        slot.notices[subscription] = notice
        self._bytes += notice.size - slot.size
        slot.size = notice.size
        if len(self._slots) > self._most_keys or (self._bytes > self._most_bytes and len(self._slots) > 1):
            self.spill()
        self._count()

    def take(self, most_bytes: int) -> list[Delivery[S]]:
        """What has waited longest, of about so many bytes; then it does not wait any more."""
        taken: list[Delivery[S]] = []
        size = 0
        while self._slots and size < most_bytes:
            slot = self._slots.pop(next(iter(self._slots)))
            letters: dict[int, Delivery[S]] = {}
            for subscription, notice in slot.notices.items():
                letters.setdefault(id(notice), Delivery(notice, [])).subscriptions.append(subscription)
            taken += letters.values()
            size += slot.size
            self._bytes -= slot.size
        self._count()
        return taken

    def withdraw(self, subscription: S) -> None:
        """Nothing waits for this subscription any more."""
        for place, slot in list(self._slots.items()):
            slot.notices.pop(subscription, None)
            if not slot.notices:
                self._bytes -= self._slots.pop(place).size
        self._count()

    def reopen(self) -> None:
        """The client has been told that it lost something: what comes from now on waits again."""
        self.spilled = False

    def lag(self) -> ClientLag:
        """How far the client is behind now."""
        oldest = next(iter(self._slots.values())).at if self._slots else self._clock()
        return ClientLag(len(self._slots), self.conflated, round((self._clock() - oldest) * 1000))

    def spill(self) -> None:
        """Drop all that waits: the client has to read anew."""
        self.conflated += sum(len(slot.notices) for slot in self._slots.values())
        self._slots.clear()
        self._bytes = 0
        self.spilled = True
        self._count()

    def _count(self) -> None:
        """Report what waits here now to the budget of all clients."""
        waiting = self._bytes + SLOT_BYTES * len(self._slots)
        changed, self._counted = waiting - self._counted, waiting
        if self._budget is not None:
            self._budget.change(changed)
