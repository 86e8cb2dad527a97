"""Finds names in the stores: those of present values, and of keys that become silent, closed or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.push.event import CHANGED, REMOVED, REQUESTED, matches
from services.query.push.names import Cause, Name
from services.query.push.routing_table import LOCAL
from services.query.push.subscription import StoreScan
from services.query.store import Seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.push.event import Reason
    from services.query.push.feed import ChangeFeed
    from services.query.push.reader import NameReader
    from services.query.push.routing_table import RoutingTable
    from services.query.push.subscription import ClosedWindows, Subscription
    from services.query.store import Entry


class StoreScanner:
    """Adds names to the streams. The subscriptions receive changes already, so that nothing is missed between."""

    def __init__(self, reader: NameReader, feed: ChangeFeed, routing: RoutingTable, clock: Callable[[], float]) -> None:
        self._reader = reader
        self._feed = feed
        self._routing = routing
        self.clock = clock

    def add_key(self, subscription: Subscription, key: str, reason: Reason = REQUESTED) -> None:
        """Add the name of the key; for a subscription to all windows, those of its present windows.

        A requested value that is not after the delivered offset is one that the client has, or does not want. Of a key
        that started again, the delivered window may be removed: its name has that window.
        """
        partition = self._routing.partition(subscription.filter.state, key)
        presents = self._reader.presents(subscription, key)
        found = [one for one in presents if reason is CHANGED or subscription.lacks(one)]
        if presents and not found:
            self.skip_key(subscription, key)
            return
        starts: list[int | None] = [one.entry.window_start for one in found]
        if subscription.filter.window != "all" or not starts:
            delivered = subscription.delivered_value(key, None) if reason is REMOVED else None
            starts = [None if delivered is None else delivered[0]]
        for window_start in starts:
            self._add(subscription, key, window_start, partition, reason=reason)

    def skip_key(self, subscription: Subscription, key: str) -> None:
        """Record the present value as delivered: the client wants later ones only."""
        for present in self._reader.presents(subscription, key):
            if matches(subscription.filter, present, subscription.silent_until):
                subscription.delivered.advance(subscription.delivered_key(key, present.order[0]), present.order)

    def add_page(self, scan: StoreScan) -> None:
        """Add the next names of a scan, of partitions that this instance still serves and that are still the scan's."""
        subscription = scan.subscription
        scan.partitions = [partition for partition in scan.partitions if self._is_active(scan, partition)]
        reason = REQUESTED if subscription.is_relayed and not scan.is_notice else CHANGED
        for key, entry in self._reader.page(scan):
            if scan.since is None or entry.offset > scan.since or subscription.filter.silent_for is not None:
                self._add(subscription, key, entry.window_start, entry.partition, entry.offset, reason)
            elif subscription.is_relayed and subscription.filter.is_conditional:
                self._assume_delivered(subscription, key, entry)
        if scan.is_done and not scan.is_notice:
            for partition in scan.partitions:
                del subscription.scans[partition]

    def add_expired(self, subscription: Subscription) -> None:
        """Add the delivered keys whose window has expired since the last call."""
        oldest = self._reader.oldest_window(subscription.filter.state)
        for name in list(subscription.delivered.pop_expired(lambda start: start < oldest)):
            key, order = (name if isinstance(name, str) else name[0]), subscription.delivered.get(name)
            partition = self._routing.partition(subscription.filter.state, key)
            if order is not None and self._is_local(subscription, partition):
                self._add(subscription, key, order[0], partition)
            elif order is not None and not subscription.is_relayed:
                self._send_expired(subscription, key, order[0], oldest)

    def add_silent(self, subscription: Subscription, until: int) -> None:
        """Add the keys that have become silent since the last call: their last record is before this second."""
        since, wanted = subscription.silent_until, subscription.filter
        if until <= since:
            return
        self._feed.set_silent_until(subscription, until)
        if wanted.key is not None:
            times = [one.entry.event_time // 1000 for one in self._reader.presents(subscription, wanted.key)]
            partition = self._routing.partition(wanted.state, wanted.key)
            if any(since <= time < until for time in times) and self._is_local(subscription, partition):
                self.add_key(subscription, wanted.key, CHANGED)
        elif subscription.silence_scan is None or subscription.silence_scan.is_done:
            partitions = self._routing.local_partitions(wanted.state)
            if self._reader.has_silent(subscription, partitions, Seconds(since, until)):
                subscription.silence_scan = StoreScan(subscription, partitions, silent_since=since)
                subscription.stream.scan(subscription.silence_scan)

    def add_closed(self, subscription: Subscription, closed: ClosedWindows) -> None:
        """Add the windows that have closed: they are sent once more, for an answer has `is_open`."""
        wanted, key = subscription.filter, subscription.filter.key
        if key is None:
            if partitions := self._routing.local_partitions(wanted.state):
                subscription.stream.scan(StoreScan(subscription, partitions, closed=closed))
        elif self._is_local(subscription, partition := self._routing.partition(wanted.state, key)):
            for entry in self._reader.windows[wanted.state].closed_entries(key, wanted.window, closed):
                self._add(subscription, key, entry.window_start, partition, entry.offset)

    def _add(  # noqa: PLR0913, PLR0917  # the facts of a cause
        self,
        subscription: Subscription,
        key: str,
        window_start: int | None,
        partition: int,
        offset: int | None = None,
        reason: Reason = CHANGED,
    ) -> None:
        known = self._feed.offset(subscription.filter.state, partition) if offset is None else offset
        name = self._name(subscription, key, window_start)
        subscription.stream.add(subscription, name, Cause(partition, known, self.clock(), reason))

    def _send_expired(self, subscription: Subscription, key: str, start: int, oldest: int) -> None:
        """Send the expiry of a window that another instance serves, which knows only what it has sent itself.

        The store of this instance may be behind, or have a window that was removed: no value is read from it.
        """
        name = self._name(subscription, key, start)
        kind = subscription.next_event(name, None, CHANGED, oldest)
        if kind is not None:
            subscription.stream.send_gone(subscription, self._reader.gone(kind, name, None), self.clock())

    def _name(self, subscription: Subscription, key: str, window_start: int | None) -> Name:
        state = subscription.filter.state
        return Name(state, key, window_start if state in self._reader.windows else None)

    def _is_local(self, subscription: Subscription, partition: int) -> bool:
        return self._routing.route(subscription.filter.state, partition) == LOCAL

    def _is_active(self, scan: StoreScan, partition: int) -> bool:
        is_current = scan.is_notice or scan.subscription.scans.get(partition) is scan
        return is_current and self._is_local(scan.subscription, partition)

    def _assume_delivered(self, subscription: Subscription, key: str, entry: Entry) -> None:
        """The other instance delivered this entry before: its client learns when the key stops to match."""
        present = self._reader.present_of(subscription.filter.state, entry)
        if matches(subscription.filter, present, subscription.silent_until):
            subscription.record_state(key, present.order)
