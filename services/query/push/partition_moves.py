"""Starts subscriptions, and moves them as partitions move from one instance to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.push.event import REMOVED, REQUESTED
from services.query.push.routing_table import LOCAL
from services.query.push.stream_items import EarlierVersions, PartitionsStarted
from services.query.push.subscription import BEFORE_ALL, StoreScan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.feed import ChangeFeed
    from services.query.push.reader import NameReader
    from services.query.push.routing_table import RouteChange, RoutingTable
    from services.query.push.scanner import StoreScanner
    from services.query.push.stream import Stream
    from services.query.push.subscription import Subscription


class PartitionMoves:
    """Serves partitions of this instance from its store, and the others by watches at their owners.

    A subscription of another instance is served from this store only: that instance requests the rest itself.
    """

    def __init__(self, routing: RoutingTable, reader: NameReader, feed: ChangeFeed, scanner: StoreScanner) -> None:
        self._routing = routing
        self._reader = reader
        self._feed = feed
        self._scanner = scanner

    def start(self, stream: Stream, subscription: Subscription, after: DeliveredOrder | None = None) -> None:
        """Start all partitions of a subscription. `after`: the client has this version of its key."""
        wanted = subscription.filter
        routes = {partition: self._routing.route(wanted.state, partition) for partition in subscription.since}
        if after is not None and wanted.key is not None:
            subscription.record_state(wanted.key, after)
            if LOCAL in routes.values() and not subscription.is_relayed:
                deliveries = self._reader.earlier_versions(subscription, wanted.key, self._scanner.clock())
                stream.send_first(EarlierVersions(subscription, deliveries))
        self._start_here(stream, subscription, [partition for partition, route in routes.items() if route == LOCAL])
        if not subscription.current:
            new = [one for one, route in routes.items() if route is None and subscription.since[one] is None]
            subscription.ends = dict.fromkeys(new)
        if stream.upstreams is not None:
            stream.upstreams.follow(subscription, {route for route in routes.values() if route})

    def resume(self, stream: Stream, subscription: Subscription, since: Mapping[int, int | None]) -> None:
        """Deliver also what came after these offsets of the partitions, as soon as this instance serves them."""
        subscription.since.update(since)
        state = subscription.filter.state
        self._start_here(stream, subscription, [one for one in since if self._routing.route(state, one) == LOCAL])

    def begin_at(self, stream: Stream, subscription: Subscription, ends: Mapping[int, int]) -> None:
        """Deliver what follows these ends of partitions that no instance served when the subscription began.

        What this instance reads after it begins to serve one is delivered too, even if it was written before the end.
        Another instance may know earlier than this one that this one owns them: it learns from where they continue.
        """
        for partition, end in ends.items():
            since = subscription.since[partition]
            last = end - 1 if since is None else min(end - 1, since)
            subscription.ends[partition] = last
            if subscription.is_relayed:
                subscription.begun[partition] = last
        self._report_begun(stream, subscription, list(ends))
        self._begin_at_ends(stream, subscription)

    def _begin_at_ends(self, stream: Stream, subscription: Subscription) -> None:
        """Begin the partitions whose ends are known, and which an instance serves by now."""
        state = subscription.filter.state
        routes = {one: self._routing.route(state, one) for one, end in subscription.ends.items() if end is not None}
        here = [partition for partition, route in routes.items() if route == LOCAL]
        earlier = {route for partition, route in routes.items() if subscription.begin_at_end(partition)}
        self._start_here(stream, subscription, here)
        if stream.upstreams is not None:
            stream.upstreams.follow(subscription, {route for route in earlier if route})

    def move(self, stream: Stream, subscription: Subscription, change: RouteChange) -> None:
        """Follow a partition to another instance. Changes in between may have been missed."""
        partition = change.partition
        if partition not in subscription.since:
            return
        if change.previous == LOCAL:
            stream.pause(subscription, partition, self._feed.offset(change.state, partition))
        if change.route == LOCAL:
            stream.send_copies_first()
            if partition in subscription.ends:
                if subscription.since[partition] is None:  # its end may be found after the feed has delivered changes
                    self._begin(subscription, [partition])
                    subscription.complete([partition])
                self._begin_at_ends(stream, subscription)
            else:
                self._start_here(stream, subscription, [partition])
        if stream.upstreams is not None:
            if change.previous:
                stream.upstreams.leave(subscription, change.previous)
            stream.upstreams.follow(subscription, {change.route} if change.route else ())

    def _start_here(self, stream: Stream, subscription: Subscription, partitions: list[int]) -> None:
        """Deliver the present values of partitions of this instance, or what came after the delivered offsets.

        An offset that the topic has not reached is one of an earlier topic of this name: all records are later. So is
        one of a topic that this instance knows to be gone. An instance that relays the changes has such an offset too.
        """
        former = [partition for partition in partitions if self._is_beyond(subscription, partition)]
        subscription.since.update(dict.fromkeys(former, BEFORE_ALL))
        later = [partition for partition in partitions if subscription.since[partition] == BEFORE_ALL]
        first = [partition for partition in partitions if subscription.since[partition] is None]
        if (key := subscription.filter.key) is None:
            for partition in partitions:
                if (since := subscription.since[partition]) is not None:
                    self._scan(StoreScan(subscription, [partition], since))
        elif partitions and (subscription.current or not first):
            has_restarted = self._has_restarted(subscription, key)
            self._scanner.add_key(subscription, key, REMOVED if has_restarted else REQUESTED)
        elif partitions:
            self._scanner.skip_key(subscription, key)
        self._begin(subscription, partitions)
        self._report_begun(stream, subscription, later, BEFORE_ALL)
        if first:
            self._start_first(stream, subscription, first)

    def _start_first(self, stream: Stream, subscription: Subscription, partitions: list[int]) -> None:
        """Deliver the present values of these partitions, if the client wants them."""
        self._report_begun(stream, subscription, partitions)
        if not subscription.current:
            subscription.complete(partitions)
        elif subscription.filter.key is None:
            self._scan(StoreScan(subscription, partitions, is_initial=True))
        else:
            stream.finish_initial(subscription, set(partitions))

    def _has_restarted(self, subscription: Subscription, key: str) -> bool:
        """Return whether a key has a lower version than its client: a tombstone was between the two.

        The instance that answers for the partition of the present entry, which need not be that of the key, has all
        that others have delivered, but for what one sends in the moment after it has released the lease.
        """
        for present in self._reader.presents(subscription, key):
            place = subscription.filter.state, present.entry.partition
            if self._routing.route(*place) != LOCAL or self._routing.has_lost([place]):
                continue
            delivered = subscription.delivered_value(key, present.order[0])
            if delivered is not None and present.order[:3] < delivered[:3]:
                return True
        return False

    @staticmethod
    def _report_begun(
        stream: Stream, subscription: Subscription, partitions: list[int], after: int | None = None
    ) -> None:
        """Send to another instance after which offsets the partitions are delivered: where they began, by default."""
        if subscription.is_relayed and partitions:
            offsets = {one: subscription.begun[one] if after is None else after for one in partitions}
            stream.send_first(PartitionsStarted(subscription, offsets))

    def _is_beyond(self, subscription: Subscription, partition: int) -> bool:
        """Return whether the delivered offset is larger than all of the topic."""
        since = subscription.since[partition]
        return since is not None and since > self._reader.stored_offset(subscription.filter.state, partition)

    def _begin(self, subscription: Subscription, partitions: list[int]) -> None:
        """Note the present offsets: what the store has is about to be delivered, or is not wanted."""
        for partition in partitions:
            subscription.begun[partition] = self._reader.stored_offset(subscription.filter.state, partition)

    def _scan(self, scan: StoreScan) -> None:
        """Scan these partitions, in place of earlier scans of them."""
        scan.subscription.scans.update(dict.fromkeys(scan.partitions, scan))
        scan.subscription.stream.scan(scan)
