"""Reads from the stores what a subscription must receive before, or in addition to, the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.lookup.version_reference import delivered_order
from services.query.push.fanout import NO_WINDOWS
from services.query.push.filter import RecordFields
from services.query.push.notification import NotificationKind
from services.query.push.routing_table import LOCAL
from services.query.push.subscription import StoreScan
from services.query.store import Entry, Scan, Seconds
from services.query.store.index import FIRST_SECOND
from services.query.store.scan import NO_FILTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from services.query.push.fanout import ChangeFanout
    from services.query.push.notification import Notification
    from services.query.push.routing_table import RoutingTable
    from services.query.push.state_windows import StateWindows
    from services.query.push.subscription import ClosedWindows, Subscription
    from services.query.store import Position, Store

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
        elif not self._deliver_if_matching(subscription, key, entry):
            subscription.deliver_gone(self._fanout.gone_notification(NotificationKind.LEFT, state, key, entry))

    def skip_key(self, subscription: Subscription, key: str) -> None:
        """Record the present value as delivered: the client wants later ones only."""
        for entry in self._entries(subscription, key):
            if subscription.matches_entry(key, entry, RecordFields(entry.value)):
                is_closed = self._fanout.is_closed(subscription.filter.state, entry)
                subscription.mark_delivered(key, delivered_order(entry.order, is_closed=is_closed))

    def earlier_versions(self, subscription: Subscription, key: str) -> list[Notification]:
        """The earlier versions kept of a key that the client does not have; they are recorded as delivered.

        Only of its newest window.
        """
        state = subscription.filter.state
        if subscription.filter.window != "newest" or subscription.filter.silent_for is not None:
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
        scan.partitions = [partition for partition in scan.partitions if self._is_active(scan, partition)]
        if scan.closed is not None:
            items, scan.after = self._windows[wanted.state].closed_page(scan, scan.closed)
        else:
            items, scan.after = self._read_page(scan)
        for key, entry in items:
            if scan.closed is not None:
                self._deliver_if_matching(scan.subscription, key, entry)
            elif scan.since is None or entry.offset > scan.since:
                self._deliver(scan.subscription, key, entry)
            elif wanted.silent_for is not None:  # the client has this entry, which may have become silent
                self._deliver_if_matching(scan.subscription, key, entry)
        size, keys = sum(len(entry.value) for _, entry in items), len({key for key, _ in items})
        scan.limit = max(1, min(PAGE_MAX, PAGE_BYTES * keys // (size or 1)))
        if scan.after is None:
            scan.done = True
            for one in () if scan.is_notice else scan.partitions:
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

    def deliver_silent(self, subscription: Subscription, until: int) -> None:
        """Deliver the keys that have become silent since the last call: their last record is before this second."""
        since = subscription.silent_until
        if until <= since:
            return
        self._fanout.set_silent_until(subscription, until)
        wanted, key = subscription.filter, subscription.filter.key
        if key is not None:
            entry = self._stores[wanted.state].get(key)
            if entry is not None and since <= entry.event_time // 1000 < until and self._is_local(subscription):
                self.deliver_key(subscription, key)
        elif subscription.silence_scan is None or subscription.silence_scan.done:
            partitions = self._routing.local_partitions(wanted.state)
            scan = Scan(partitions, 1, wanted.prefix, silent=Seconds(since, until))
            page = self._stores[wanted.state].scan(scan)
            if page.items or page.after is not None:
                subscription.silence_scan = StoreScan(subscription, partitions, silent_since=since)
                subscription.sink.scan(subscription.silence_scan)

    def deliver_closed(self, subscription: Subscription, closed: ClosedWindows) -> None:
        """Deliver the windows that have closed once more: an answer reports whether its window is open."""
        wanted, key = subscription.filter, subscription.filter.key
        if key is None:
            if partitions := self._routing.local_partitions(wanted.state):
                subscription.sink.scan(StoreScan(subscription, partitions, closed=closed))
        elif self._is_local(subscription):
            for entry in self._windows[wanted.state].closed_entries(key, wanted.window, closed):
                self._deliver_if_matching(subscription, key, entry)

    def _is_local(self, subscription: Subscription) -> bool:
        return self._routing.route(subscription.filter.state, subscription.partition or 0) == LOCAL

    def _entries(self, subscription: Subscription, key: str) -> Sequence[Entry]:
        """The present entries of the key that the subscription receives, oldest first."""
        windows = self._windows.get(subscription.filter.state)
        if windows is not None:
            return windows.entries(key, subscription.filter.window)
        entry = self._stores[subscription.filter.state].get(key)
        return [] if entry is None else [entry]

    def _read_page(self, scan: StoreScan) -> tuple[Sequence[tuple[str, Entry]], Position | None]:
        """The next entries that the subscription may receive, and where to continue; None at the end."""
        wanted, silent, where = scan.subscription.filter, None, NO_FILTER
        if wanted.silent_for is not None and scan.since is None:
            first = FIRST_SECOND if scan.silent_since is None else scan.silent_since
            silent = Seconds(first, scan.subscription.silent_until)
        elif scan.since is None:
            where = dict(wanted.where)
        windows = self._windows.get(wanted.state)
        if windows is not None and silent is None:
            return windows.page(scan, where)
        page = self._stores[wanted.state].scan(
            Scan(scan.partitions, scan.limit, wanted.prefix, scan.after, where, silent=silent)
        )
        return [(position.key, entry) for position, entry in page.items], page.after

    def _is_active(self, scan: StoreScan, partition: int) -> bool:
        local = self._routing.route(scan.subscription.filter.state, partition) == LOCAL
        return local and (scan.is_notice or scan.subscription.scans.get(partition) is scan)

    def _deliver_if_matching(self, subscription: Subscription, key: str, entry: Entry) -> bool:
        is_match = subscription.matches_entry(key, entry, RecordFields(entry.value))
        if is_match:
            subscription.deliver(self._fanout.value_notification(subscription.filter.state, key, entry))
        return is_match

    def _deliver(self, subscription: Subscription, key: str, entry: Entry) -> None:
        state = subscription.filter.state
        if self._deliver_if_matching(subscription, key, entry):
            return
        if subscription.is_relayed or subscription.was_delivered(key, entry.window_start):
            subscription.deliver_gone(self._fanout.gone_notification(NotificationKind.LEFT, state, key, entry))
