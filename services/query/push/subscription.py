"""Subscriptions: one filter of one client, what it has received, and from where each partition continues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from services.query.push.delivered_versions import DeliveredVersions
from services.query.push.event import AFTER_EPOCHS, REMOVED, REQUESTED, STATE, EventKind, event, expired_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.delivered_versions import DeliveredKey
    from services.query.push.event import Answer, Present, Reason
    from services.query.push.filter import SubscriptionFilter
    from services.query.push.filter_index import FilterMatches
    from services.query.push.names import Cause, Name
    from services.query.store import Position

BEFORE_ALL = -1
"""The offset before all records of a partition."""
FIRST_PAGE = 10
"""Keys of the first page of a scan: values may be large."""


class ClosedWindows(NamedTuple):
    """The windows that start in [first, end), in milliseconds since 1970."""

    first: int
    end: int


@dataclass(eq=False)
class StoreScan:
    """A scan of some partitions for a subscription, page by page: it finds names.

    With `since` it finds only entries after that offset: the client has the others. `is_initial`: the client requested
    these values, and is notified when it has them all. With `silent_since` it finds the keys whose last record is of
    that second or later, as they become silent; with `closed`, the windows that have closed.
    """

    subscription: Subscription
    partitions: list[int] = field(default_factory=list)
    since: int | None = None
    is_initial: bool = False
    limit: int = FIRST_PAGE
    silent_since: int | None = None
    closed: ClosedWindows | None = None
    after: Position | None = None
    is_done: bool = False

    @property
    def is_notice(self) -> bool:
        """Whether it finds entries that have become silent or closed: no partition waits for its end."""
        return self.silent_since is not None or self.closed is not None


class NameReceiver(Protocol):
    """The stream to the client, as the feed and the scans use it."""

    def add(self, subscription: Subscription, name: Name, cause: Cause) -> None:
        """Add a name that may have changed for the subscription."""
        ...

    def scan(self, scan: StoreScan) -> None:
        """Add what the scan finds, as fast as the client takes it."""
        ...

    def send_gone(self, subscription: Subscription, answer: Answer, at: float) -> None:
        """Send what is gone of a partition that another instance serves, after what was copied from it."""
        ...


class Subscription:
    """The subscription of one client under one name. `current`: the client wants the present values first.

    It remembers the delivered versions of `limit` keys. With `is_relayed` the client is another instance, which knows
    what its own client has.
    """

    def __init__(  # noqa: PLR0913  # all but two have one caller
        self,
        name: str,
        wanted: SubscriptionFilter,
        stream: NameReceiver,
        *,
        current: bool,
        limit: int,
        is_relayed: bool = False,
    ) -> None:
        self.name = name
        self.filter = wanted
        self.stream = stream
        self.current = current
        self.is_relayed = is_relayed
        self.since: dict[int, int | None] = {}
        """By partition that is wanted, the offset up to which all was delivered; None before the present values."""
        self.begun: dict[int, int] = {}
        """By partition, the offset up to which the present values are those that were requested last."""
        self.ends: dict[int, int | None] = {}
        """By partition that no instance has served yet, its last offset when this began; None until that is known."""
        self.scans: dict[int, StoreScan] = {}
        """The present scan of each partition. An earlier one may lack changes."""
        self.silent_until = 0
        """With `silent_for`: keys whose last record is of an earlier second are silent, in seconds since 1970."""
        self.silence_scan: StoreScan | None = None
        """The scan of the keys that have become silent."""
        self.matches: FilterMatches[Subscription] | None = None
        """Where its keys are recorded while its filter is conditional."""
        self.delivered = DeliveredVersions(limit, self._unmatch)

    def wants(self, partition: int) -> bool:
        """Whether the client wants changes of this partition from this instance. It may lie beside that of the key."""
        return not self.is_relayed or self.filter.key is not None or partition in self.since

    def delivered_key(self, key: str, window_start: int | None) -> DeliveredKey:
        """The name by which versions are ordered: the key, or each of its windows."""
        return (key, window_start) if self.filter.window == "all" else key

    def delivered_value(self, key: str, window_start: int | None) -> DeliveredOrder | None:
        """The version of the key, or of its window, that the client has; None also if it knows that this expired."""
        order = self.delivered.get(self.delivered_key(key, window_start))
        return None if order is None or order[1] >= AFTER_EPOCHS else order

    def has_window(self, key: str, window_start: int) -> bool:
        """Whether the last delivered version of the key is of this window; for another instance, whether it may be."""
        order = self.delivered.get(self.delivered_key(key, window_start))
        return self.is_relayed if order is None else order[0] == window_start

    def has_left(self, key: str) -> bool:
        """Whether the key does not match, as far as the client knows: it had none, or one until it did not match."""
        return self.filter.is_conditional and self.delivered.get(key) is None

    def lacks(self, present: Present) -> bool:
        """Whether the client may lack the present entry by the delivered offset, or that its window is closed."""
        since = self.since.get(present.entry.partition)
        is_later = since is None or present.entry.offset > since
        return is_later or present.is_closed or self.filter.silent_for is not None

    def is_ahead(self, key: str, present: Present) -> bool:
        """Whether another instance may have a later version than the present one of a key that was removed before.

        It takes the present one only after it has learned of the removal.
        """
        delivered = self.delivered.get(self.delivered_key(key, present.order[0]))
        is_older = delivered is None or (present.order <= delivered and present.order[:3] != delivered[:3])
        return self.is_relayed and is_older

    def next_event(self, name: Name, present: Present | None, reason: Reason, oldest_window: int) -> EventKind | None:
        """The event that the client receives now about a name; it counts as delivered."""
        window_start = name.window_start if present is None else present.order[0]
        key = (name.key, window_start) if self.filter.window == "all" else name.key
        delivered = None if self.is_relayed and reason is REQUESTED else self.delivered.get(key)
        kind = event(self.filter, delivered, present, reason, oldest_window, self.silent_until)
        if kind is STATE and present is not None:
            if reason is REMOVED:  # it may have reappeared with any version
                self.delivered.forget(key)
            self.record_state(name.key, present.order)
        elif kind is not None:
            start = present.order[0] if present is not None else delivered[0] if delivered else 0
            self.record_gone(kind, key, start)
        return kind

    def record_state(self, key: str, order: DeliveredOrder) -> bool:
        """Record that the client has this version; returns False if it has this or a newer one already."""
        name = self.delivered_key(key, order[0])
        is_recorded = self.delivered.advance(name, order)
        if self.matches is not None:
            self.matches.add(name, self)
        return is_recorded

    def record_gone(self, kind: EventKind, name: DeliveredKey, window_start: int) -> None:
        """Record that the client does not have the key any more. No version of an expired window follows."""
        if kind is EventKind.EXPIRED:
            self.delivered.advance(name, expired_order(window_start))
        else:
            self.delivered.forget(name)
        self._unmatch(name)

    def pause(self, partition: int, fed: int, waiting: int | None) -> None:
        """Note what was delivered of a partition that this instance does not serve any more.

        `fed` is the offset of the last change that it received, `waiting` that of the first one that still waited.
        """
        scan = self.scans.pop(partition, None)
        if self.since.get(partition) is not None:
            offsets = [max(fed, self.begun.get(partition, -1))]
            offsets += [] if waiting is None else [waiting - 1]
            offsets += [] if scan is None or scan.since is None else [scan.since]
            self.since[partition] = min(offsets)

    def complete(self, partitions: Iterable[int]) -> None:
        """Note that the present values of these partitions were delivered, or are not wanted."""
        for partition in partitions:
            if partition in self.begun:
                self.since[partition] = self.begun[partition]

    def begin_at_end(self, partition: int) -> bool:
        """Deliver all after the end that a partition had when this began, now that an instance serves it.

        Return whether that is more than what follows the offset at which the instance began.
        """
        end, since = self.ends.get(partition), self.since[partition]
        if end is None or since is None:
            return False
        del self.ends[partition]
        self.since[partition] = min(since, end)
        return end < since

    def read_again(self, partition: int, *, is_other_topic: bool) -> None:
        """Note that a partition is read from its beginning again. All records of another topic are later ones.

        A client of the present values receives them again.
        """
        self.begun.pop(partition, None)
        if partition in self.since and (self.current or is_other_topic):
            self.since[partition] = None if self.current else BEFORE_ALL
        scan = self.scans.get(partition)
        if scan is not None and scan.since is not None:
            del self.scans[partition]

    def reset(self) -> None:
        """Forget all delivered versions: the client reads anew."""
        self.delivered.clear()
        self.scans.clear()
        self.silence_scan = None
        self.complete(partition for partition, since in self.since.items() if since is None)

    def _unmatch(self, name: DeliveredKey) -> None:
        if self.matches is not None:
            self.matches.remove(name, self)
