"""How subscriptions begin, and go on as partitions move from one instance to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.push.routing_table import LOCAL
from services.query.push.store_scanner import StoreScan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.query.dependencies import Parts
    from services.query.push.fanout import ChangeFanout
    from services.query.push.peer_relays import PeerRelays
    from services.query.push.routing_table import RouteChange, RoutingTable
    from services.query.push.store_scanner import StoreScanner
    from services.query.push.subscription import Subscription
    from services.query.store.entry import Order


class SubscriptionRouter:
    """What this instance answers for is told from its store, the rest by other instances, over links.

    A relayed subscription is another instance's: it gets what is here alone, and says itself what it lacks.
    """

    def __init__(
        self, parts: Parts, places: RoutingTable, hub: ChangeFanout, reader: StoreScanner, links: PeerRelays
    ) -> None:
        self._parts = parts
        self._places = places
        self._hub = hub
        self._reader = reader
        self._links = links
        self._others: set[str] = set()

    def begin(self, subscription: Subscription, after: Order | None) -> None:
        """Tell what there is now, if that is wanted. `after`: the client has this of its key."""
        key = subscription.interest.key
        if key is None:
            if not subscription.relayed:
                self._begin(subscription, self._places.here(subscription.interest.state))
                self._wait(subscription, self._places.nowhere(subscription.interest.state))
                self._links.keep(subscription, self._others)
            return
        place = self._place(subscription)
        if after is not None:
            subscription.current = True
            subscription.know(key, after)
            if place == LOCAL:
                subscription.outbox.put_first(subscription, self._reader.kept(subscription, key))
        self._go_on(subscription, key, place)

    def take_up(self, subscription: Subscription, since: Mapping[int, int | None]) -> None:
        """Tell of these partitions what came after the offsets, as soon as they are answered for here."""
        here = set(self._places.here(subscription.interest.state))
        if subscription.relayed:
            subscription.asked.update(since)
        self._begin(subscription, [one for one, offset in since.items() if one in here and offset is None])
        for partition, offset in since.items():
            if partition in here and offset is not None:
                _read(StoreScan(subscription, [partition], offset))

    def move(self, subscription: Subscription, move: RouteChange) -> None:
        """A partition is answered for elsewhere now; what changed meanwhile may have been missed."""
        key, number = subscription.interest.key, move.partition
        if key is not None:
            if subscription.partition == number:
                self._go_on(subscription, key, move.place)
        elif subscription.relayed:
            if move.place == LOCAL and number in subscription.asked:
                told = self._told(subscription, number)
                self.take_up(subscription, {number: subscription.asked[number] if told is None else told})
        elif move.place == LOCAL:
            self.take_up(subscription, {number: self._told(subscription, number)})
        elif move.place is not None:
            self._links.resume(move.place, subscription, number)

    def look(self) -> None:
        """See which other instances there are, and be told by them of what concerns many keys."""
        own = self._parts.settings.instance
        others = {one.url for one in self._parts.roles.members() if one.instance != own}
        if others == self._others:
            return
        self._others = others
        for state in self._parts.states:
            for one in self._hub.subscriptions(state):
                if one.interest.key is None and not one.relayed:
                    self._links.keep(one, others)

    def end(self, subscription: Subscription) -> None:
        """Nothing is told any more."""
        self._links.keep(subscription, ())

    def since(self, subscription: Subscription, url: str) -> Mapping[int, int | None]:
        """What an instance is to tell: of the partitions that it answers for."""
        state = subscription.interest.state
        asked = (
            range(self._parts.states[state].partitions) if subscription.partition is None else (subscription.partition,)
        )
        return {one: self._told(subscription, one) for one in asked if self._places.place(state, one) == url}

    def _place(self, subscription: Subscription) -> str | None:
        return self._places.place(subscription.interest.state, subscription.partition or 0)

    def _told(self, subscription: Subscription, partition: int) -> int | None:
        reading = subscription.readings.get(partition)
        if reading is not None and reading.since is not None:
            return reading.since
        return subscription.reached.get(partition) if partition in subscription.begun else None

    def _go_on(self, subscription: Subscription, key: str, place: str | None) -> None:
        if not subscription.relayed:
            self._links.keep(subscription, [place] if place else [])
        partition = subscription.partition or 0
        if place != LOCAL:
            if place is None and not (subscription.current or subscription.begun):
                self._reader.know(subscription, key)
                self._wait(subscription, [partition])
            return
        if subscription.current or partition in subscription.begun:
            self._reader.key(subscription, key)
        else:
            self._reader.know(subscription, key)
        if subscription.current and partition not in subscription.begun:
            subscription.outbox.read(StoreScan(subscription, [partition], first=True, done=True))
        subscription.begun.add(partition)
        self._reach(subscription, [partition])

    def _reach(self, subscription: Subscription, partitions: list[int]) -> None:
        """Another instance has to know from where it can go on, should this one go: it may begin here only later."""
        for partition in partitions:
            self._reader.reach(subscription, partition)
        if subscription.relayed and partitions:
            subscription.outbox.begin(subscription, {one: subscription.reached[one] for one in partitions})

    def _wait(self, subscription: Subscription, partitions: list[int]) -> None:
        """Nobody answers for these now. Who wants only what comes later is to be told what came meanwhile."""
        if not subscription.current:
            for partition in partitions:
                self._reader.reach(subscription, partition)
            subscription.begun.update(partitions)

    def _begin(self, subscription: Subscription, partitions: list[int]) -> None:
        self._reach(subscription, partitions)
        if not subscription.current:
            subscription.begun.update(partitions)
        elif partitions:
            _read(StoreScan(subscription, partitions, first=True))


def _read(reading: StoreScan) -> None:
    """It reads these partitions, in place of any that began before they went away."""
    reading.subscription.readings.update(dict.fromkeys(reading.partitions, reading))
    reading.subscription.outbox.read(reading)
