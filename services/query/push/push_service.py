"""Who watches what: opens streams, begins and ends their subscriptions, and moves them with the partitions."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from contracts.metrics import query as metrics
from services.query.lookup.answer_encoder import AnswerEncoder
from services.query.lookup.problems import Problem, ProblemError
from services.query.push.client_stream import ClientStream
from services.query.push.fanout import ChangeFanout
from services.query.push.peer_relays import PeerRelays
from services.query.push.routing_table import RoutingTable
from services.query.push.send_queue import QueueBudget, SendQueue
from services.query.push.store_scanner import StoreScanner
from services.query.push.subscription import Subscription
from services.query.push.subscription_router import SubscriptionRouter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from services.query.dependencies import Parts
    from services.query.ingest.ingestion import Part
    from services.query.limits import WatchLimits
    from services.query.lookup.authentication import Principal
    from services.query.push.client_stream import ProgressMark
    from services.query.push.filter import Filter
    from services.query.store.entry import Change, Entry, Order

GOLDEN = 0.618
"""Multiples of it, less their whole part, are spread evenly, however many there are."""
LOOK_EVERY_S = 0.1
"""How often it is looked whether partitions have moved."""


class PushService:
    """A Listener of the follower, and all streams of this instance."""

    def __init__(self, parts: Parts, limits: WatchLimits) -> None:
        self.limits = limits
        self._parts = parts
        self._places = RoutingTable(parts.states, parts.roles)
        self._forms = {name: AnswerEncoder(state, parts.settings.instance) for name, state in parts.states.items()}
        self.hub = ChangeFanout(parts.states, self._places, self._answer, parts.clock, self._present)
        self._reader = StoreScanner(parts.stores, self.hub, self._places)
        self._links = PeerRelays(parts.settings.peer_token, self._since, self._go, parts.clock)
        self._course = SubscriptionRouter(parts, self._places, self.hub, self._reader, self._links)
        self._budget = QueueBudget(limits.all_waiting_bytes, self._cut_off)
        self._streams: dict[ClientStream, None] = {}
        self._touched: dict[ClientStream, None] = {}
        self._ticks = 0.0
        self._connections: Counter[str] = Counter()
        self.look()

    def changed(self, changes: Sequence[Change]) -> None:
        """See Listener."""
        self.hub.changed(changes)
        self._go()

    def restarted(self, part: Part) -> None:
        """See Listener."""
        self.hub.forget(part.state, part.partition)

    async def run(self) -> None:
        """Follow the partitions until cancelled; then all streams end."""
        try:
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                self.look()
        finally:
            for stream in self._streams:
                stream.end()
            await self._links.close()

    def look(self) -> None:
        """See where partitions are answered for now, and let the subscriptions go on from there."""
        for move in self._places.look():
            for subscription in self.hub.subscriptions(move.state):
                self._course.move(subscription, move)
        self._course.look()
        self._go()
        self._parts.counts.set(metrics.WAITING_BYTES, self._budget.used)

    @contextmanager
    def stream(self, who: Principal, *, relays: bool = False) -> Iterator[ClientStream]:
        """A stream for this client, until the end of the block. Raises ProblemError if it has too many.

        One that `relays` is another instance, and has room for all its clients.
        """
        if self._connections[who.name] >= self.limits.connections and not relays:
            raise ProblemError(Problem("too_many", f"{who.name} has {self.limits.connections} connections that watch"))
        limits = self.limits.relayed() if relays else self.limits
        mailbox = SendQueue[Subscription](limits.waiting_keys, limits.waiting_bytes, self._parts.clock, self._budget)
        stream = ClientStream(who, self._reader, mailbox, self._touch)
        self._connections[who.name] += 1
        self._streams[stream] = None
        self._parts.counts.set(metrics.STREAMS, len(self._streams))
        ticking = asyncio.get_running_loop().create_task(self._tick(stream))
        try:
            yield stream
        finally:
            ticking.cancel()
            for name in list(stream.subscriptions):
                self.unsubscribe(stream, name)
            del self._streams[stream]
            self._parts.counts.set(metrics.STREAMS, len(self._streams))
            self._connections[who.name] -= 1

    def renew(self, again: Callable[[Principal], Principal | None]) -> None:
        """The tokens are others now: end what they do not allow any more. `again` says what the same token may do."""
        for stream in self._streams:
            who = again(stream.who)
            if who is None:
                stream.refuse(Problem("no_token", "The token was taken away"))
            elif who != stream.who:
                stream.who = who
                self._narrow(stream)

    def _cut_off(self) -> None:
        """Disconnect those whose changes wait longest, until a quarter of the budget is free."""
        problem = Problem("too_slow", "Connect again, and read faster: too much waits for all clients together")
        waiting = [one for one in self._streams if one.mailbox]
        for stream in sorted(waiting, key=lambda one: one.mailbox.lag().oldest_ms, reverse=True):
            if self._budget.used <= self._budget.most * 3 // 4:
                break
            stream.cut_off(problem)
            self._parts.counts.add(metrics.CUT_OFF)

    def _narrow(self, stream: ClientStream) -> None:
        """End what is beyond the scope of who watches."""
        for name, subscription in list(stream.subscriptions.items()):
            try:
                stream.who.check(subscription.interest.state, subscription.interest.reach)
            except ProblemError as error:
                self.unsubscribe(stream, name)
                stream.deny(name, error.problem)

    def subscribe(
        self, stream: ClientStream, name: str, interest: Filter, *, current: bool, after: Order | None = None
    ) -> None:
        """Tell the client from now on; first what is there now, if it wants that. `after`: it has this of the key."""
        self._course.begin(self._added(stream, name, interest, current=current), after)

    def relay(
        self, stream: ClientStream, name: str, interest: Filter, since: Mapping[int, int | None], *, current: bool
    ) -> None:
        """Tell another instance of what is here, of these partitions what came after the offsets."""
        subscription = self._added(stream, name, interest, current=current)
        subscription.relayed = True
        self._course.begin(subscription, None)
        self._course.take_up(subscription, since if interest.key is None else {})

    def resume(self, stream: ClientStream, name: str, since: Mapping[int, int | None]) -> None:
        """Tell another instance also what came after these offsets of the partitions."""
        if name in stream.subscriptions:
            self._course.take_up(stream.subscriptions[name], since)

    def _added(self, stream: ClientStream, name: str, interest: Filter, *, current: bool) -> Subscription:
        stream.who.check(interest.state, interest.reach)
        self._check(interest, current=current)
        self.unsubscribe(stream, name)
        subscription = Subscription(name, interest, stream, current=current, most=self.limits.remembered)
        stream.add(subscription)
        self.hub.add(subscription)
        self._parts.counts.set(metrics.SUBSCRIPTIONS, self.hub.watched(interest.state), interest.state)
        return subscription

    def unsubscribe(self, stream: ClientStream, name: str) -> bool:
        """Tell the client no more; whether there was such a subscription."""
        subscription = stream.subscriptions.pop(name, None)
        if subscription is None:
            return False
        self._course.end(subscription)
        self.hub.remove(subscription)
        state = subscription.interest.state
        self._parts.counts.set(metrics.SUBSCRIPTIONS, self.hub.watched(state), state)
        stream.withdraw(subscription)
        return True

    def progress(self, stream: ClientStream, mark: ProgressMark) -> dict[str, Any]:
        """What a mark says. Positions are told only when all that is before them has gone to the client."""
        states: dict[str, Any] = {}
        for name in sorted({one.interest.state for one in stream.subscriptions.values()}):
            here = self._places.here(name)
            states[name] = {"lag": {"records": sum(self._parts.roles.standing(name, one).lag for one in here)}}
            if mark.complete:
                states[name]["positions"] = {str(one): at for one, at in self.hub.positions(name).items()}
        return {**mark.lag._asdict(), "states": states}

    def _since(self, subscription: Subscription, url: str) -> Mapping[int, int | None]:
        return self._course.since(subscription, url)

    def _present(self, state: str, key: str) -> Entry | None:
        return self._parts.stores[state].get(key)

    def _answer(self, state: str, key: str, entry: Entry) -> bytes:
        """What a read of the key gives, at the moment when somebody is about to get it."""
        standing = self._parts.roles.standing(state, entry.partition)
        return self._forms[state].encode(key, entry, standing, self._parts.now())

    def _touch(self, stream: ClientStream) -> None:
        self._touched[stream] = None

    def _go(self) -> None:
        """After a batch, so that of a key that changed twice in it only the latest goes."""
        touched, self._touched = self._touched, {}
        for stream in touched:
            stream.go()

    def _check(self, interest: Filter, *, current: bool) -> None:
        """Raises ProblemError for what cannot be watched."""
        state = self._parts.states.get(interest.state)
        if state is None:
            raise ProblemError(Problem("unknown_state", f"{interest.state!r} is none: GET /v1/states lists them"))
        missing = [path for path, _ in interest.where if path not in state.query.indexes]
        if current and missing:
            detail = f"{', '.join(missing)}: not indexed. Ask with current=false, or declare QueryOptions(indexes=…)"
            raise ProblemError(Problem("bad_request", detail))

    async def _tick(self, stream: ClientStream) -> None:
        """Streams that began together do not all have their marks at one moment."""
        counted, self._ticks = 0, (self._ticks + GOLDEN) % 1
        await asyncio.sleep(self._ticks * self.limits.mark_every_s)
        while True:
            await asyncio.sleep(self.limits.mark_every_s)
            for subscription in stream.subscriptions.values():
                self._reader.tell_ended(subscription)
            stream.mark()
            self._parts.counts.add(metrics.CONFLATED, by=stream.mailbox.conflated - counted)
            counted = stream.mailbox.conflated
