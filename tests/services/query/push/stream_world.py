"""A stream over a store, a feed and partitions that move, and what its client knows."""

from __future__ import annotations

import orjson

from contracts.model.named_state import QueryOptions
from services.query.cluster import PartitionStatus, Role
from services.query.lookup.authentication import ANONYMOUS
from services.query.push.event import Answer, EventKind
from services.query.push.feed import ChangeFeed
from services.query.push.filter import SubscriptionFilter
from services.query.push.names import NamesBudget, WaitingNames
from services.query.push.partition_moves import PartitionMoves
from services.query.push.reader import NameReader
from services.query.push.routing_table import RoutingTable
from services.query.push.scanner import StoreScanner
from services.query.push.stream import Stream
from services.query.push.subscription import Subscription
from services.query.store import Change, Entry, Update
from tests.services.query.in_memory import MemoryRouting, a_state, dependencies_of

KEYS = ["a1", "a2", "b1", "b2"]
STATUSES = ["landed", "flying"]
FILTERS = [
    SubscriptionFilter("flights", "a1"),
    SubscriptionFilter("flights", None, "a"),
    SubscriptionFilter("flights", None, ""),
    SubscriptionFilter("flights", None, "", (("status", "landed"),)),
    SubscriptionFilter("flights", None, "b", (("status", "landed"),)),
]


class World:
    """An instance whose store is ahead of its feed, and a client that takes items at its own pace."""

    def __init__(self) -> None:
        self.roles = MemoryRouting()
        self.dependencies = dependencies_of(a_state(query=QueryOptions(indexes=("status",))), routing=self.roles)
        self.store = self.dependencies.stores["flights"]
        self.routing = RoutingTable(self.dependencies.states, self.roles)
        self.reader = reader = NameReader(self.dependencies)
        self.feed = ChangeFeed(self.dependencies.states, self.routing, reader, lambda: 0.0)
        scanner = StoreScanner(reader, self.feed, self.routing, lambda: 0.0)
        self.moves = PartitionMoves(self.routing, reader, self.feed, scanner)
        names = WaitingNames[Subscription](10_000, lambda: 0.0, NamesBudget(10**9, lambda: None))
        self.stream = Stream(ANONYMOUS, names, reader, scanner, lambda _: None)
        self.pending: list[Change] = []
        self.version = 0
        self.views: dict[Subscription, View] = {}
        self.routing.refresh()

    def record(self, key: str, status: str) -> None:
        self.version += 1
        value = orjson.dumps({"status": status})
        self._apply(key, Entry(0, 0, self.version, 0, self.routing.partition("flights", key), self.version, value))

    def remove(self, key: str) -> None:
        self.version += 1
        self._apply(key, None)

    def notify(self, number: int) -> None:
        taken, self.pending = self.pending[:number], self.pending[number:]
        self.feed.changed(taken)

    def subscribe(self, which: int, current: bool) -> None:  # noqa: FBT001  # drawn
        one = Subscription(f"{len(self.views)}", FILTERS[which], self.stream, current=current, limit=100)
        self.stream.subscribe(one)
        self.views[one] = View(0 if current else self.version)
        self.feed.add(one)
        key = one.filter.key
        one.since = dict.fromkeys(range(4) if key is None else [self.routing.partition("flights", key)])
        self.start(one)

    def start(self, one: Subscription) -> None:
        """Start a subscription; the broker returns at once where partitions end."""
        self.moves.start(self.stream, one)
        self.moves.begin_at(self.stream, one, {number: self._end(number) for number in one.ends})

    def _end(self, partition: int) -> int:
        return self.store.position(partition) or 0

    def take(self, number: int) -> None:
        for _ in range(number):
            item = self.stream.next_item()
            for delivery in item if isinstance(item, list) else ():
                for name in delivery.ids:
                    self.views[self.stream.subscriptions[name]].take(delivery.answer)

    def lose(self, partition: int) -> None:
        self._set_role(partition, Role.CATCHING_UP)

    def own(self, partition: int) -> None:
        self._set_role(partition, Role.OWNER)

    def settle(self) -> None:
        """Deliver and take all changes."""
        for partition in range(4):
            self.own(partition)
        self.notify(len(self.pending))
        self.take(200)

    def check(self) -> None:
        for one, view in self.views.items():
            wanted = self._wanted(one)
            later = {key: version for key, version in wanted.items() if version > view.since}
            assert view.versions.items() >= later.items()
            assert view.versions.items() <= wanted.items()

    def _wanted(self, one: Subscription) -> dict[str, int]:
        found: dict[str, int] = {}
        for key in KEYS:
            entry = self.store.get(key)
            wanted = one.filter
            if entry is None or not (key == wanted.key if wanted.key else key.startswith(wanted.prefix)):
                continue
            if all(orjson.loads(entry.value)[path] == value for path, value in wanted.where):
                found[key] = entry.version
        return found

    def _apply(self, key: str, entry: Entry | None) -> None:
        partition = self.routing.partition("flights", key)
        self.store.apply([Update(key, partition, self.version, entry)], {partition: self.version + 1})
        self.pending.append(Change("flights", key, entry))

    def _set_role(self, partition: int, role: Role) -> None:
        self.roles.others[partition] = PartitionStatus(role, 0)
        self.reader.expire()
        for change in self.routing.refresh():
            for subscription in self.feed.subscriptions("flights"):
                self.moves.move(self.stream, subscription, change)


class View:
    """The state of a client of one subscription, which must receive everything after this version."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.versions: dict[str, int] = {}

    def take(self, answer: Answer) -> None:
        found = orjson.loads(answer.body)
        if answer.kind is EventKind.STATE:
            assert found["version"] > self.versions.get(found["key"], 0), "an older version, or the same again"
            self.versions[found["key"]] = found["version"]
        else:
            self.versions.pop(found["key"], None)
