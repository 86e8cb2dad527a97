"""Reads from the store what a subscription is to be told before, or beside, what changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.query.push.filter import RecordFields
from services.query.push.notification import NotificationKind
from services.query.push.routing_table import LOCAL
from services.query.store.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from services.query.push.fanout import ChangeFanout
    from services.query.push.notification import Notification
    from services.query.push.routing_table import RoutingTable
    from services.query.push.subscription import Subscription
    from services.query.store.store import Store

PAGE = 100
"""How many keys are read at a time at the most: about a millisecond, in which nothing else is done."""
PAGE_FIRST, PAGE_BYTES = 10, 256 * 1024
"""How many are read first, and then about so many bytes at a time: values may be large."""


@dataclass
class StoreScan:
    """Keys of some partitions that a subscription is to be told of, page by page.

    With `since`, only what came after that offset: it was told of the rest. `first`: these are the present values that
    the client asked for, and it is told when it has them.
    """

    subscription: Subscription
    partitions: Collection[int] = ()
    since: int | None = None
    first: bool = False
    limit: int = PAGE_FIRST
    after: str | None = None
    done: bool = False


class StoreScanner:
    """Gives subscriptions what the stores have. They hear of changes already, so that nothing is missed between."""

    def __init__(self, stores: Mapping[str, Store], hub: ChangeFanout, places: RoutingTable) -> None:
        self._stores = stores
        self._hub = hub
        self._places = places

    def key(self, subscription: Subscription, key: str) -> None:
        """Tell what a key is now."""
        state = subscription.interest.state
        store = self._stores[state]
        entry = store.get(key)
        if entry is None:
            kind = NotificationKind.REMOVED if subscription.holds(key) else NotificationKind.NEVER_SEEN
            subscription.tell_gone(self._hub.gone(kind, state, key))
        elif store.ended(entry):
            subscription.know(key, entry.order)
            subscription.tell_gone(self._hub.gone(NotificationKind.EXPIRED, state, key, entry))
        else:
            subscription.tell(self._hub.notice(state, key, entry))

    def know(self, subscription: Subscription, key: str) -> None:
        """Take what a key is now for told: only what comes later is wanted."""
        entry = self._stores[subscription.interest.state].get(key)
        if entry is not None:
            subscription.know(key, entry.order)

    def kept(self, subscription: Subscription, key: str) -> list[Notification]:
        """The earlier versions kept of a key that the client does not have. They take no other way to it than this."""
        state = subscription.interest.state
        earlier = list(self._stores[state].versions(key))[:-1]
        return [self._hub.notice(state, key, one) for one in earlier if subscription.know(key, one.order)]

    def page(self, reading: StoreScan) -> None:
        """Tell of the next keys, of the partitions that are still answered for here, and that it still reads."""
        asked = reading.subscription.interest
        reading.partitions = [one for one in reading.partitions if self._reads(reading, one)]
        where = dict(asked.where) if reading.since is None else {}
        page = self._stores[asked.state].page(
            prefix=asked.prefix, after=reading.after, limit=reading.limit, where=where, partitions=reading.partitions
        )
        for key, entry in page.items:
            if reading.since is None or entry.offset > reading.since:
                self._tell(reading.subscription, key, entry)
        reading.after = page.after
        size = sum(len(entry.value) for _, entry in page.items)
        reading.limit = max(1, min(PAGE, PAGE_BYTES * len(page.items) // (size or 1)))
        if page.after is None:
            reading.done = True
            for one in reading.partitions:
                reading.subscription.begun.add(one)
                del reading.subscription.readings[one]

    def reach(self, subscription: Subscription, partition: int) -> None:
        """What is in the store of the partition now has been told, or is about to be, or is not wanted."""
        position = self._stores[subscription.interest.state].position(partition)
        subscription.reached.setdefault(partition, (position or 0) - 1)

    def tell_ended(self, subscription: Subscription) -> None:
        """Tell of the keys whose life has ended since the last look."""
        state = subscription.interest.state
        store = self._stores[state]
        for key in subscription.ended(lambda life: store.ended(Entry(life, 0, 0, 0, 0, 0, b""))):
            subscription.tell_gone(self._hub.gone(NotificationKind.EXPIRED, state, key))

    def _reads(self, reading: StoreScan, partition: int) -> bool:
        here = self._places.place(reading.subscription.interest.state, partition) == LOCAL
        return here and reading.subscription.readings.get(partition) is reading

    def _tell(self, subscription: Subscription, key: str, entry: Entry) -> None:
        state = subscription.interest.state
        if subscription.interest.holds(RecordFields(entry.value)):
            subscription.tell(self._hub.notice(state, key, entry))
        elif subscription.relayed or subscription.holds(key):
            subscription.tell_gone(self._hub.gone(NotificationKind.LEFT, state, key, entry))
