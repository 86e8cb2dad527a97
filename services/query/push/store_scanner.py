"""Reads from the stores what a subscription must receive before, or in addition to, the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.push.fanout import NO_WINDOWS
from services.query.push.filter import RecordFields
from services.query.push.notification import NotificationKind
from services.query.push.routing_table import LOCAL
from services.query.store import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from services.query.push.fanout import ChangeFanout
    from services.query.push.notification import Notification
    from services.query.push.routing_table import RoutingTable
    from services.query.push.state_windows import StateWindows
    from services.query.push.subscription import StoreScan, Subscription
    from services.query.store import Store

PAGE_MAX = 100
"""The largest number of keys per page: about a millisecond, in which the event loop does nothing else."""
PAGE_BYTES = 256 * 1024
"""About how many bytes a page has."""


class StoreScanner:
    """Delivers entries of the stores. The subscriptions receive changes already, so that nothing is missed between."""

    def __init__(
        self,
        stores: Mapping[str, Store],
        fanout: ChangeFanout,
        routing: RoutingTable,
        windows: Mapping[str, StateWindows] = NO_WINDOWS,
    ) -> None:
        self._stores = stores
        self._windows = windows
        self._fanout = fanout
        self._routing = routing

    def deliver_key(self, subscription: Subscription, key: str) -> None:
        """Deliver the present value of a key, or that it has none. In a windowed state, of the chosen windows."""
        state = subscription.filter.state
        store, entries = self._stores[state], self._entries(subscription, key)
        for entry in entries[:-1]:
            subscription.deliver(self._fanout.value_notification(state, key, entry))
        if not entries:
            delivered = subscription.was_delivered(key)
            kind = NotificationKind.REMOVED if delivered else NotificationKind.NEVER_SEEN
            subscription.deliver_gone(self._fanout.gone_notification(kind, state, key))
        elif store.is_expired(entry := entries[-1]):
            subscription.mark_delivered(key, entry.order)
            subscription.deliver_gone(self._fanout.gone_notification(NotificationKind.EXPIRED, state, key, entry))
        else:
            subscription.deliver(self._fanout.value_notification(state, key, entry))

    def skip_key(self, subscription: Subscription, key: str) -> None:
        """Record the present value as delivered: the client wants later ones only."""
        for entry in self._entries(subscription, key):
            subscription.mark_delivered(key, entry.order)

    def earlier_versions(self, subscription: Subscription, key: str) -> list[Notification]:
        """The earlier versions kept of a key that the client does not have; they are recorded as delivered.

        Only of its newest window.
        """
        state = subscription.filter.state
        if subscription.filter.window != "newest":
            return []
        earlier = list(self._stores[state].versions(key))[:-1]
        return [
            self._fanout.value_notification(state, key, one)
            for one in earlier
            if subscription.mark_delivered(key, one.order)
        ]

    def deliver_page(self, scan: StoreScan) -> None:
        """Deliver the next keys, of partitions that this instance still serves and that are still the scan's."""
        wanted = scan.subscription.filter
        scan.partitions = [one for one in scan.partitions if self._is_active(scan, one)]
        where = dict(wanted.where) if scan.since is None else {}
        items, scan.after = self._read_page(scan, where)
        for key, entry in items:
            if scan.since is None or entry.offset > scan.since:
                self._deliver(scan.subscription, key, entry)
        size, keys = sum(len(entry.value) for _, entry in items), len({key for key, _ in items})
        scan.limit = max(1, min(PAGE_MAX, PAGE_BYTES * keys // (size or 1)))
        if scan.after is None:
            scan.done = True
            for one in scan.partitions:
                scan.subscription.started.add(one)
                del scan.subscription.scans[one]

    def mark_offset(self, subscription: Subscription, partition: int) -> None:
        """Record what the store has of the partition as delivered: it was, or is about to be, or is not wanted."""
        position = self._stores[subscription.filter.state].position(partition)
        subscription.delivered_offsets.setdefault(partition, (position or 0) - 1)

    def deliver_expired(self, subscription: Subscription) -> None:
        """Deliver the keys whose window has expired since the last call."""
        state = subscription.filter.state
        store = self._stores[state]
        expired = subscription.pop_expired(lambda start: store.is_expired(Entry(start, 0, 0, 0, 0, 0, b"")))
        for key, start in expired:
            gone = self._fanout.gone_notification(NotificationKind.EXPIRED, state, key, window_start=start)
            subscription.deliver_gone(gone)

    def _entries(self, subscription: Subscription, key: str) -> Sequence[Entry]:
        """The present entries of the key that the subscription receives, oldest first."""
        windows = self._windows.get(subscription.filter.state)
        if windows is not None:
            return windows.entries(key, subscription.filter.window)
        entry = self._stores[subscription.filter.state].get(key)
        return [] if entry is None else [entry]

    def _read_page(self, scan: StoreScan, where: Mapping[str, str]) -> tuple[Sequence[tuple[str, Entry]], str | None]:
        """The next entries that the subscription may receive, and the key to continue after."""
        wanted = scan.subscription.filter
        windows = self._windows.get(wanted.state)
        if windows is not None:
            return windows.page(scan, where)
        page = self._stores[wanted.state].page(
            prefix=wanted.prefix, after=scan.after, limit=scan.limit, where=where, partitions=scan.partitions
        )
        return page.items, page.after

    def _is_active(self, scan: StoreScan, partition: int) -> bool:
        local = self._routing.route(scan.subscription.filter.state, partition) == LOCAL
        return local and scan.subscription.scans.get(partition) is scan

    def _deliver(self, subscription: Subscription, key: str, entry: Entry) -> None:
        state = subscription.filter.state
        if subscription.filter.matches(RecordFields(entry.value)):
            subscription.deliver(self._fanout.value_notification(state, key, entry))
        elif subscription.is_relayed or subscription.was_delivered(key, entry.window_start):
            subscription.deliver_gone(self._fanout.gone_notification(NotificationKind.LEFT, state, key, entry))
