"""Starts subscriptions, and moves them as partitions move from one instance to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.push.routing_table import LOCAL
from services.query.push.subscription import StoreScan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.query.dependencies import Dependencies
    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.fanout import ChangeFanout
    from services.query.push.peer_relays import PeerRelays
    from services.query.push.routing_table import RouteChange, RoutingTable
    from services.query.push.store_scanner import StoreScanner
    from services.query.push.subscription import Subscription


class SubscriptionRouter:
    """Serves partitions of this instance from its store, and the others by relays to their owners.

    A subscription that another instance relays is served from this store only: that instance requests the rest itself.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        routing: RoutingTable,
        fanout: ChangeFanout,
        scanner: StoreScanner,
        relays: PeerRelays,
    ) -> None:
        self._dependencies = dependencies
        self._routing = routing
        self._fanout = fanout
        self._scanner = scanner
        self._relays = relays
        self._others: set[str] = set()

    def start(self, subscription: Subscription, after: DeliveredOrder | None) -> None:
        """Deliver the present values, if the client wants them. `after`: the client has this version of its key."""
        state, key = subscription.filter.state, subscription.filter.key
        if key is None:
            if not subscription.is_relayed:
                self._start(subscription, self._routing.local_partitions(state))
                self._start_unrouted(subscription, self._routing.unrouted_partitions(state))
                self._relays.route(subscription, self._others)
            return
        route = self._route(subscription)
        if after is not None:
            subscription.current = True
            subscription.mark_delivered(key, after)
            if route == LOCAL:
                subscription.sink.put_first(subscription, self._scanner.earlier_versions(subscription, key))
        self._route_key(subscription, key, route)

    def resume(self, subscription: Subscription, since: Mapping[int, int | None]) -> None:
        """Deliver what came after these offsets of the partitions, as soon as this instance serves them."""
        local = set(self._routing.local_partitions(subscription.filter.state))
        if subscription.is_relayed:
            subscription.requested.update(since)
        self._start(subscription, [one for one, offset in since.items() if one in local and offset is None])
        for partition, offset in since.items():
            if partition in local and offset is not None:
                _scan(StoreScan(subscription, [partition], offset))

    def move(self, subscription: Subscription, change: RouteChange) -> None:
        """Follow a partition to another instance. Changes in between may have been missed."""
        key, number = subscription.filter.key, change.partition
        if key is not None:
            if subscription.partition == number:
                self._route_key(subscription, key, change.route)
        elif subscription.is_relayed:
            if change.route == LOCAL and number in subscription.requested:
                delivered = self._delivered_offset(subscription, number)
                since = subscription.requested[number] if delivered is None else delivered
                self.resume(subscription, {number: since})
        elif change.route == LOCAL:
            self.resume(subscription, {number: self._delivered_offset(subscription, number)})
        elif change.route is not None:
            self._relays.resume(change.route, subscription, number)

    def refresh_members(self) -> None:
        """Relay subscriptions to many keys from all other instances that are in the cluster."""
        own = self._dependencies.settings.instance
        others = {member.url for member in self._dependencies.routing.members() if member.instance != own}
        if others == self._others:
            return
        self._others = others
        for state in self._dependencies.states:
            for subscription in self._fanout.subscriptions(state):
                if subscription.filter.key is None and not subscription.is_relayed:
                    self._relays.route(subscription, others)

    def stop(self, subscription: Subscription) -> None:
        """End the relays of the subscription."""
        self._relays.route(subscription, ())

    def since(self, subscription: Subscription, url: str) -> Mapping[int, int | None]:
        """The offsets after which the instance must deliver, of the partitions that it serves."""
        state = subscription.filter.state
        partitions = (
            range(self._dependencies.states[state].partitions)
            if subscription.partition is None
            else (subscription.partition,)
        )
        return {
            partition: self._delivered_offset(subscription, partition)
            for partition in partitions
            if self._routing.route(state, partition) == url
        }

    def _route(self, subscription: Subscription) -> str | None:
        return self._routing.route(subscription.filter.state, subscription.partition or 0)

    def _delivered_offset(self, subscription: Subscription, partition: int) -> int | None:
        scan = subscription.scans.get(partition)
        if scan is not None and scan.since is not None:
            return scan.since
        return subscription.delivered_offsets.get(partition) if partition in subscription.started else None

    def _route_key(self, subscription: Subscription, key: str, route: str | None) -> None:
        if not subscription.is_relayed:
            self._relays.route(subscription, [route] if route else [])
        partition = subscription.partition or 0
        if route != LOCAL:
            if route is None and not (subscription.current or subscription.started):
                self._scanner.skip_key(subscription, key)
                self._start_unrouted(subscription, [partition])
            return
        if subscription.current or partition in subscription.started:
            self._scanner.deliver_key(subscription, key)
        else:
            self._scanner.skip_key(subscription, key)
        if subscription.current and partition not in subscription.started:
            subscription.sink.scan(StoreScan(subscription, [partition], is_initial=True, done=True))
        subscription.started.add(partition)
        self._mark_offsets(subscription, [partition])

    def _mark_offsets(self, subscription: Subscription, partitions: list[int]) -> None:
        """Record the present offsets. A relaying instance needs them to continue at another one if this one stops."""
        for partition in partitions:
            self._scanner.mark_offset(subscription, partition)
        if subscription.is_relayed and partitions:
            offsets = {one: subscription.delivered_offsets[one] for one in partitions}
            subscription.sink.start(subscription, offsets)

    def _start_unrouted(self, subscription: Subscription, partitions: list[int]) -> None:
        """Start at the present offsets of partitions without an instance: later changes must not be missed."""
        if not subscription.current:
            for partition in partitions:
                self._scanner.mark_offset(subscription, partition)
            subscription.started.update(partitions)

    def _start(self, subscription: Subscription, partitions: list[int]) -> None:
        self._mark_offsets(subscription, partitions)
        if not subscription.current:
            subscription.started.update(partitions)
        elif partitions:
            _scan(StoreScan(subscription, partitions, is_initial=True))


def _scan(scan: StoreScan) -> None:
    """Scan these partitions, in place of earlier scans of them."""
    scan.subscription.scans.update(dict.fromkeys(scan.partitions, scan))
    scan.subscription.sink.scan(scan)
