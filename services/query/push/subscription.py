"""Subscriptions: one filter of one client, what it has received, and the scans of the store that serve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from services.query.push.delivered_versions import DeliveredVersions
from services.query.push.notification import NotificationKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.delivered_versions import DeliveredKey
    from services.query.push.filter import RecordFields, SubscriptionFilter
    from services.query.push.filter_index import FilterMatches
    from services.query.push.notification import Notification
    from services.query.store import Entry, EntryOrder, Position

FIRST_PAGE = 10
"""Keys of the first page of a scan: values may be large."""


class ClosedWindows(NamedTuple):
    """The windows that start in [first, end), in milliseconds since 1970."""

    first: int
    end: int


@dataclass
class StoreScan:
    """A scan of some partitions for a subscription, page by page.

    With `since` it sends only entries after that offset: the client has the others. `is_initial`: the client requested
    these values, and is notified when it has them all. With `silent_since` it sends the keys whose last record is of
    that second or later, as they become silent; with `closed`, the windows that have closed.
    """

    subscription: Subscription
    partitions: Collection[int] = ()
    since: int | None = None
    is_initial: bool = False
    limit: int = FIRST_PAGE
    silent_since: int | None = None
    closed: ClosedWindows | None = None
    after: Position | None = None
    done: bool = False

    @property
    def is_notice(self) -> bool:
        """Whether it sends entries that have become silent or closed: the client need not wait for them."""
        return self.silent_since is not None or self.closed is not None


class NotificationSink(Protocol):
    """Takes notifications for one client."""

    def put(self, subscription: Subscription, notification: Notification) -> None:
        """Queue it until the client can take it."""
        ...

    def put_first(self, subscription: Subscription, notifications: Iterable[Notification]) -> None:
        """Send each of these before everything that is queued."""
        ...

    def start(self, subscription: Subscription, offsets: dict[int, int]) -> None:
        """Report that everything after these offsets of the partitions is delivered from now on."""
        ...

    def scan(self, scan: StoreScan) -> None:
        """Send what the scan finds, as fast as the client takes it."""
        ...

    def reset(self) -> None:
        """Changes were lost: the client must read again."""
        ...


class Subscription:
    """The subscription of one client under one name. `current`: the client wants the present values first.

    It remembers the delivered versions of `limit` keys.
    """

    def __init__(
        self, name: str, wanted: SubscriptionFilter, sink: NotificationSink, *, current: bool, limit: int
    ) -> None:
        self.name = name
        self.filter = wanted
        self.sink = sink
        self.current = current
        self.requested: dict[int, int | None] = {}
        """The partitions that another instance wants, after these offsets, while this instance serves them."""
        self.scans: dict[int, StoreScan] = {}
        """The present scan of each partition. An earlier one may lack changes."""
        self.partition: int | None = None
        """The partition of its key."""
        self.is_relayed = False
        """Whether another instance relays it to a client: this instance does not know what that client has."""
        self.delivered_offsets: dict[int, int] = {}
        """The offset of the last delivered change by partition: another instance continues after it."""
        self.started: set[int] = set()
        """The partitions whose present values were delivered, or are not wanted."""
        self.matches: FilterMatches[Subscription] | None = None
        """Where its keys are recorded while it filters by fields or by silence."""
        self.silent_until = 0
        """With `silent_for`: keys whose last record is of an earlier second are silent, in seconds since 1970."""
        self.silence_scan: StoreScan | None = None
        """The scan of the keys that have become silent."""
        self._delivered = DeliveredVersions(limit, self._unmatch)

    def matches_entry(self, key: str, entry: Entry, record: RecordFields) -> bool:
        """Whether the entry of a key matches the filter now, whose key or prefix it has."""
        is_silent = self.filter.silent_for is None or entry.event_time // 1000 < self.silent_until
        return is_silent and self.filter.matches_key(key) and self.filter.matches(record)

    def deliver(self, notification: Notification) -> None:
        """Queue the value of a key, unless the client has it or a newer one."""
        if notification.order is None or not self.mark_delivered(notification.key, notification.order):
            return
        self._advance(notification)
        if self.matches is not None:
            self.matches.add(self._name(notification.key, notification.order[0]), self)
        self.sink.put(self, notification)

    def deliver_gone(self, notification: Notification) -> None:
        """Queue that a key is gone or does not match any more. With a filter, only for keys that the client has."""
        self._advance(notification)
        name = self._name(notification.key, notification.window_start)
        delivered = name in self._delivered
        if notification.kind is not NotificationKind.EXPIRED:  # an expired window must not be delivered again
            self._delivered.forget(name)
        self._unmatch(name)
        if delivered or self.is_relayed or self.filter.key is not None or not self.filter.is_conditional:
            self.sink.put(self, notification)

    def mark_delivered(self, key: str, order: DeliveredOrder) -> bool:
        """Record that the client has this version; returns False if it has this one or a newer one already."""
        return self._delivered.advance(self._name(key, order[0]), order)

    def has_version(self, key: str, order: EntryOrder) -> bool:
        """Whether this is the last delivered version of the key."""
        delivered = self._delivered.get(self._name(key, order[0]))
        return delivered is not None and delivered[: len(order)] == order

    def has_at_least(self, key: str, order: EntryOrder) -> bool:
        """Whether this version or a newer one was delivered: a scan may be ahead of the changes."""
        delivered = self._delivered.get(self._name(key, order[0]))
        return delivered is not None and delivered >= order

    def was_delivered(self, key: str, window_start: int | None = None) -> bool:
        """Whether the client has a version of the key, as far as that is remembered.

        For a subscription to all windows, of this window.
        """
        return self._name(key, window_start) in self._delivered

    def has_window(self, key: str, window_start: int) -> bool:
        """Whether the last delivered version of the key is of this window."""
        order = self._delivered.get(self._name(key, window_start))
        return order is not None and order[0] == window_start

    def pop_expired(self, is_expired: Callable[[int], bool]) -> list[tuple[str, int]]:
        """The delivered keys whose window has expired since the last call, with the start of that window."""
        names = list(self._delivered.pop_expired(is_expired))
        orders = [(name if isinstance(name, str) else name[0], self._delivered.get(name)) for name in names]
        return [(key, order[0]) for key, order in orders if order is not None]

    def reset(self) -> None:
        """Forget all delivered versions: the client reads anew."""
        self._delivered.clear()
        self.silence_scan = None

    def _advance(self, notification: Notification) -> None:
        if notification.offset >= 0:
            before = self.delivered_offsets.get(notification.partition, -1)
            self.delivered_offsets[notification.partition] = max(notification.offset, before)

    def _name(self, key: str, window_start: int | None) -> DeliveredKey:
        """Return the name by which versions are ordered: the key, or each of its windows."""
        return (key, window_start) if self.filter.window == "all" else key

    def _unmatch(self, name: DeliveredKey) -> None:
        if self.matches is not None:
            self.matches.remove(name, self)
