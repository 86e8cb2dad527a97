"""One thing that one client asked to be told of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.query.push.delivered_versions import DeliveredVersions
from services.query.push.notification import NotificationKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from services.query.push.filter import Filter
    from services.query.push.filter_matches import FilterMatches
    from services.query.push.notification import Notification
    from services.query.push.store_scanner import StoreScan
    from services.query.store.entry import Order


class NotificationSink(Protocol):
    """Where notices for a client wait."""

    def put(self, subscription: Subscription, notice: Notification) -> None:
        """Let it wait until the client can take it."""
        ...

    def put_first(self, subscription: Subscription, notices: Iterable[Notification]) -> None:
        """Let each of these go before all else."""
        ...

    def begin(self, subscription: Subscription, reached: dict[int, int]) -> None:
        """Let it be said that of these partitions all is told that comes after the offsets."""
        ...

    def read(self, reading: StoreScan) -> None:
        """Let what is read go, as fast as the client takes it."""
        ...

    def lose(self) -> None:
        """Changes were lost on their way: the client has to read anew."""
        ...


class Subscription:
    """What one client asked for under one name, and what it was told. `current`: with the present values first.

    It is remembered of `most` keys what was told.
    """

    def __init__(self, name: str, interest: Filter, outbox: NotificationSink, *, current: bool, most: int) -> None:
        self.name = name
        self.interest = interest
        self.outbox = outbox
        self.current = current
        self.asked: dict[int, int | None] = {}
        """The partitions of which another instance is told while they are answered for here: after these offsets."""
        self.readings: dict[int, StoreScan] = {}
        """What still reads a partition; what is told meanwhile is later. A reading that began before may lack some."""
        self.partition: int | None = None
        """The one that its key is in."""
        self.relayed = False
        """Whether it is another instance's, for a client of its own: what that one holds is not known here."""
        self.reached: dict[int, int] = {}
        """The offset of the last change told, by partition: after it, another instance goes on."""
        self.begun: set[int] = set()
        """The partitions whose present values were told, or were not to be."""
        self.holders: FilterMatches | None = None
        """Where it is noted which keys it holds, while it filters."""
        self._shown = DeliveredVersions(most, self._release)

    def tell(self, notice: Notification) -> None:
        """Let a key's value be told, unless as much was told before."""
        if notice.order is None or not self.know(notice.key, notice.order):
            return
        self._reach(notice)
        if self.holders is not None:
            self.holders.hold(notice.key, self)
        self.outbox.put(self, notice)

    def tell_gone(self, notice: Notification) -> None:
        """Let it be told that a key is not there any more, or not what was asked for. A filter tells it of its own."""
        self._reach(notice)
        held = self.holds(notice.key)
        if notice.kind is not NotificationKind.EXPIRED:  # a life that has ended must not be told again
            self._shown.forget(notice.key)
        self._release(notice.key)
        if held or self.relayed or not self.interest.where:
            self.outbox.put(self, notice)

    def know(self, key: str, order: Order) -> bool:
        """Note that the client has this of the key; False if it has as much already."""
        return self._shown.advance(key, order)

    def has(self, key: str, order: Order) -> bool:
        """Whether just this was told last of the key."""
        return self._shown.told(key) == order

    def has_since(self, key: str, order: Order) -> bool:
        """Whether this, or something later, was told last of the key: a read may be ahead of the changes."""
        told = self._shown.told(key)
        return told is not None and told >= order

    def holds(self, key: str) -> bool:
        """Whether the client was told of this key, as far as that is remembered."""
        return key in self._shown

    def ended(self, ended: Callable[[int], bool]) -> list[str]:
        """The keys that the client was told of, and whose life has ended since the last look."""
        return list(self._shown.ended(ended))

    def start_anew(self) -> None:
        """The client reads anew: nothing counts as told."""
        self._shown.clear()

    def _reach(self, notice: Notification) -> None:
        if notice.offset >= 0:
            self.reached[notice.partition] = max(notice.offset, self.reached.get(notice.partition, -1))

    def _release(self, key: str) -> None:
        if self.holders is not None:
            self.holders.release(key, self)
