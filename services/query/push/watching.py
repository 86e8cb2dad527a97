"""Who watches what: opens streams, begins and ends their subscriptions, and moves them with the partitions."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from contracts.metrics import query as metrics
from services.query.api.form import Form
from services.query.api.problems import Problem, ProblemError
from services.query.push.hub import Hub
from services.query.push.places import HERE, Places
from services.query.push.reading import Reader, Reading
from services.query.push.stream import Stream
from services.query.push.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from services.query.entry import Change, Entry
    from services.query.follow.following import Part
    from services.query.parts import Parts
    from services.query.push.interest import Interest
    from services.query.push.limits import Limits
    from services.query.push.notice import Order
    from services.query.push.places import Move
    from services.query.push.stream import Mark

GOLDEN = 0.618
"""Multiples of it, less their whole part, are spread evenly, however many there are."""
LOOK_EVERY_S = 0.1
"""How often it is looked whether partitions have moved."""


class Watching:
    """A Listener of the follower, and all streams of this instance."""

    def __init__(self, parts: Parts, limits: Limits) -> None:
        self.limits = limits
        self._parts = parts
        self._places = Places(parts.states, parts.roles)
        self._forms = {name: Form(state, parts.settings.instance) for name, state in parts.states.items()}
        self.hub = Hub(parts.states, self._places, self._answer, parts.clock)
        self._reader = Reader(parts.stores, self.hub, self._places)
        self._streams: dict[Stream, None] = {}
        self._touched: dict[Stream, None] = {}
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

    def look(self) -> None:
        """See where partitions are answered for now, and let the subscriptions go on from there."""
        for move in self._places.look():
            for subscription in self.hub.subscriptions(move.state):
                self._move(subscription, move)
        self._go()

    @contextmanager
    def stream(self, who: str) -> Iterator[Stream]:
        """A stream for a client of this name, until the end of the block. Raises ProblemError if it has too many."""
        if self._connections[who] >= self.limits.connections:
            raise ProblemError(Problem("too_many", f"{who} has {self.limits.connections} connections that watch"))
        stream = Stream(self._reader, self.limits, self._parts.clock, self._touch)
        self._connections[who] += 1
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
            self._connections[who] -= 1

    def subscribe(
        self, stream: Stream, name: str, interest: Interest, *, current: bool, after: Order | None = None
    ) -> Subscription:
        """Tell the client from now on; first what is there now, if it wants that. `after`: it has this of the key."""
        self._check(interest, current=current)
        self.unsubscribe(stream, name)
        subscription = Subscription(name, interest, stream, current=current, most=self.limits.remembered)
        stream.subscriptions[name] = subscription
        self.hub.add(subscription)
        self._parts.counts.set(metrics.SUBSCRIPTIONS, self.hub.watched(interest.state), interest.state)
        if interest.key is not None:
            self._resume(subscription, interest.key, after)
            self._begin_key(subscription, interest.key)
        else:
            self._begin(subscription, self._places.here(interest.state))
        return subscription

    def unsubscribe(self, stream: Stream, name: str) -> bool:
        """Tell the client no more; whether there was such a subscription."""
        subscription = stream.subscriptions.pop(name, None)
        if subscription is None:
            return False
        self.hub.remove(subscription)
        state = subscription.interest.state
        self._parts.counts.set(metrics.SUBSCRIPTIONS, self.hub.watched(state), state)
        stream.withdraw(subscription)
        return True

    def progress(self, stream: Stream, mark: Mark) -> dict[str, Any]:
        """What a mark says. Positions are told only when all that is before them has gone to the client."""
        states: dict[str, Any] = {}
        for name in sorted({one.interest.state for one in stream.subscriptions.values()}):
            here = self._places.here(name)
            states[name] = {"lag": {"records": sum(self._parts.roles.standing(name, one).lag for one in here)}}
            if mark.complete:
                states[name]["positions"] = {str(one): at for one, at in self.hub.positions(name).items()}
        return {**mark.lag._asdict(), "states": states}

    def _answer(self, state: str, key: str, entry: Entry) -> bytes:
        """What a read of the key gives, at the moment when somebody is about to get it."""
        standing = self._parts.roles.standing(state, entry.partition)
        return self._forms[state].body(key, entry, standing, self._parts.now())

    def _touch(self, stream: Stream) -> None:
        self._touched[stream] = None

    def _go(self) -> None:
        """After a batch, so that of a key that changed twice in it only the latest goes."""
        touched, self._touched = self._touched, {}
        for stream in touched:
            stream.go()

    def _move(self, subscription: Subscription, move: Move) -> None:
        """It may have missed what changed while nobody here answered."""
        if move.place != HERE:
            return
        key = subscription.interest.key
        if key is not None:
            if subscription.partition == move.partition:
                self._begin_key(subscription, key)
        elif move.partition in subscription.begun:
            since = subscription.reached.get(move.partition)
            subscription.outbox.read(Reading(subscription, [move.partition], since))
        else:
            self._begin(subscription, [move.partition])

    def _resume(self, subscription: Subscription, key: str, after: Order | None) -> None:
        """The client has this of the key. Versions since, as far as they are kept, are told one by one."""
        if after is None:
            return
        subscription.current = True
        subscription.know(key, after)
        if self._places.place(subscription.interest.state, subscription.partition or 0) == HERE:
            subscription.outbox.put_first(subscription, self._reader.kept(subscription, key))

    def _begin_key(self, subscription: Subscription, key: str) -> None:
        partition = subscription.partition or 0
        if self._places.place(subscription.interest.state, partition) != HERE:
            return
        if subscription.current or partition in subscription.begun:
            self._reader.key(subscription, key)
        else:
            self._reader.know(subscription, key)
        if subscription.current and partition not in subscription.begun:
            subscription.outbox.read(Reading(subscription, [partition], first=True, done=True))
        subscription.begun.add(partition)
        self._reader.reach(subscription, partition)

    def _begin(self, subscription: Subscription, partitions: list[int]) -> None:
        for partition in partitions:
            self._reader.reach(subscription, partition)
        if subscription.current:
            subscription.outbox.read(Reading(subscription, partitions, first=not subscription.begun))
        else:
            subscription.begun.update(partitions)

    def _check(self, interest: Interest, *, current: bool) -> None:
        """Raises ProblemError for what cannot be watched."""
        state = self._parts.states.get(interest.state)
        if state is None:
            raise ProblemError(Problem("unknown_state", f"{interest.state!r} is none: GET /v1/states lists them"))
        missing = [path for path, _ in interest.where if path not in state.asked.indexes]
        if current and missing:
            detail = f"{', '.join(missing)}: not indexed. Ask with current=false, or declare Asked(indexes=…)"
            raise ProblemError(Problem("bad_request", detail))

    async def _tick(self, stream: Stream) -> None:
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
