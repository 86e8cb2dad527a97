"""The push service: opens streams, starts and ends their subscriptions, and moves these with the partitions."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from contracts.metrics import query as metrics
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError
from services.query.push.feed import ChangeFeed
from services.query.push.names import NamesBudget, WaitingNames
from services.query.push.partition_moves import PartitionMoves
from services.query.push.peer_connections import PeerConnections
from services.query.push.reader import NameReader
from services.query.push.routing_table import RoutingTable
from services.query.push.scanner import StoreScanner
from services.query.push.stream import Stream
from services.query.push.stream_items import SubscriptionDenied
from services.query.push.subscription import Subscription
from services.query.push.upstream import Upstreams
from services.query.store.index import silent_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from services.query.dependencies import Dependencies
    from services.query.ingest import Restart
    from services.query.limits import WatchLimits
    from services.query.lookup.authentication import Principal
    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.filter import SubscriptionFilter
    from services.query.push.stream_items import ProgressMark
    from services.query.store import Change

    Connections = Callable[[Dependencies, RoutingTable, Callable[[], None]], PeerConnections]

GOLDEN = 0.618
"""The fractional parts of its multiples are spread evenly, however many there are."""
REFRESH_EVERY_S = 0.1
"""How often the routes to the partitions are refreshed."""
RETRY_S = 0.5
"""The pause before the ends of partitions are requested again that the brokers did not return."""


class PushService:
    """All streams of this instance. It implements ChangeListener for the stores.

    `connections` makes what connects to other instances.
    """

    def __init__(
        self, dependencies: Dependencies, limits: WatchLimits, connections: Connections = PeerConnections
    ) -> None:
        self.limits = limits
        self._dependencies = dependencies
        self.routing = RoutingTable(dependencies.states, dependencies.routing)
        self._reader = NameReader(dependencies)
        self.feed = ChangeFeed(dependencies.states, self.routing, self._reader, dependencies.clock)
        self._scanner = StoreScanner(self._reader, self.feed, self.routing, dependencies.clock)
        self._moves = PartitionMoves(self.routing, self._reader, self.feed, self._scanner)
        self._peers = connections(dependencies, self.routing, self._flush)
        self._budget = NamesBudget(limits.all_waiting_bytes, self._cut_off)
        self._streams: dict[Stream, None] = {}
        self._unflushed: dict[Stream, None] = {}
        self._ticks = 0.0
        self._second = 0
        self._beginning: dict[Subscription, Stream] = {}
        """The subscriptions to changes of partitions without an instance: their ends are requested."""
        self._has_beginning = asyncio.Event()
        self._connections: Counter[str] = Counter()
        self.refresh()

    def changed(self, changes: Sequence[Change]) -> None:
        """See ChangeListener. An instance that was suspended may have read them before it refreshes its routes."""
        if self._streams and self.routing.has_lost({self.feed.place(change) for change in changes}):
            self.refresh()
        self.feed.changed(changes)
        self._flush()

    def restarted(self, restart: Restart) -> None:
        """See ChangeListener. The streams first note what they have sent: the instance answers for it no more."""
        self.refresh()
        self.feed.forget(*restart.partition, is_other_topic=restart.is_other_topic)

    async def run(self) -> None:
        """Follow the partitions until cancelled; then end all streams."""
        try:
            await asyncio.gather(self._follow_routes(), self._begin())
        finally:
            for stream in self._streams:
                stream.end()
            await self._peers.close()

    def refresh(self) -> None:
        """Refresh the routes to the partitions, and move the subscriptions; read all names again."""
        self._reader.expire()
        for change in self.routing.refresh():
            for stream in self._streams:
                for subscription in stream.of(change.state):
                    self._moves.move(stream, subscription, change)
        self._add_silent()
        for state, closed in self.feed.pop_closed():
            for subscription in self.feed.subscriptions(state):
                self._scanner.add_closed(subscription, closed)
        self._flush()
        self._dependencies.counts.set(metrics.WAITING_BYTES, self._budget.used)

    @contextmanager
    def stream(self, principal: Principal, *, relays: bool = False) -> Iterator[Stream]:
        """A stream for this client, until the end of the block. Raises ProblemError (429) if it has too many.

        With `relays` the client is another instance, which may connect once for all of its clients.
        """
        name, limit = principal.name, self.limits.connections
        if self._connections[name] >= limit and not relays:
            detail = f"{name} has {limit} watching connections"
            raise ProblemError(Problem("too_many", detail, retry_after=RETRY_AFTER_S))
        most = self.limits.relayed_keys if relays else self.limits.waiting_keys
        names = WaitingNames[Subscription](most, self._dependencies.clock, self._budget)
        stream = Stream(principal, names, self._reader, self._scanner, self._on_added)
        if not relays:
            stream.upstreams = Upstreams(stream, self._peers)
        self._connections[name] += 1
        self._streams[stream] = None
        self._dependencies.counts.set(metrics.STREAMS, len(self._streams))
        ticking = asyncio.get_running_loop().create_task(self._tick(stream))
        try:
            yield stream
        finally:
            ticking.cancel()
            for subscription in list(stream.subscriptions):
                self.unsubscribe(stream, subscription)
            stream.names.overflow()
            del self._streams[stream]
            self._dependencies.counts.set(metrics.STREAMS, len(self._streams))
            self._connections[name] -= 1

    def reauthenticate(self, present: Callable[[Principal], Principal | None]) -> None:
        """End what changed tokens do not allow any more. `present` returns the present principal of the same token."""
        for stream in self._streams:
            principal = present(stream.principal)
            if principal is None:
                stream.refuse(Problem("no_token", "The token was revoked"))
            elif principal != stream.principal:
                stream.principal = principal
                self._end_denied(stream)

    def subscribe(
        self,
        stream: Stream,
        name: str,
        wanted: SubscriptionFilter,
        *,
        current: bool,
        after: DeliveredOrder | None = None,
    ) -> None:
        """Add a subscription. `current`: with the present values first. `after`: the client has this version.

        Raises ProblemError (400, 403, 404).
        """
        subscription = self._add(stream, name, wanted, current=current or after is not None)
        subscription.since = dict.fromkeys(self._partitions(wanted))
        self._start(stream, subscription, after)

    def relay(  # noqa: PLR0913  # what a command has
        self,
        stream: Stream,
        name: str,
        wanted: SubscriptionFilter,
        since: Mapping[int, int | None],
        *,
        current: bool,
        after: DeliveredOrder | None = None,
    ) -> None:
        """Add a subscription of another instance: to what this one serves, after these offsets of the partitions.

        `after`: its client has this version. The subscription replaces one of this name. If a removal waited for that,
        which no scan finds, the client reads again.
        """
        earlier = stream.subscriptions.get(name)
        is_removal_lost = earlier is not None and wanted.key is None and stream.names.has_removal(earlier)
        subscription = self._add(stream, name, wanted, current=current, is_relayed=True)
        subscription.since = (
            dict(since) if wanted.key is None else {one: since.get(one) for one in self._partitions(wanted)}
        )
        self._start(stream, subscription, after)
        if is_removal_lost:
            stream.reset()

    def resume(self, stream: Stream, name: str, since: Mapping[int, int | None]) -> None:
        """Deliver to another instance also what came after these offsets of the partitions.

        Only an instance of an earlier release sends this: a later one subscribes again.
        """
        if name in stream.subscriptions and stream.subscriptions[name].filter.key is None:
            self._moves.resume(stream, stream.subscriptions[name], since)

    def unsubscribe(self, stream: Stream, name: str) -> bool:
        """End a subscription; returns whether there was one."""
        subscription = stream.subscriptions.pop(name, None)
        if subscription is None:
            return False
        if stream.upstreams is not None:
            stream.upstreams.withdraw(subscription)
        self.feed.remove(subscription)
        self._beginning.pop(subscription, None)
        state = subscription.filter.state
        self._dependencies.counts.set(metrics.SUBSCRIPTIONS, self.feed.count(state), state)
        stream.withdraw(subscription)
        return True

    def progress(self, stream: Stream, mark: ProgressMark) -> dict[str, Any]:
        """The members of a mark. It has positions only if everything before them was sent."""
        states: dict[str, Any] = {}
        for name in sorted({subscription.filter.state for subscription in stream.subscriptions.values()}):
            local = self.routing.local_partitions(name)
            states[name] = {
                "lag": {"records": sum(self._dependencies.routing.partition_status(name, one).lag for one in local)}
            }
            if mark.complete:
                states[name]["positions"] = {str(one): at for one, at in self.feed.positions(name).items()}
        return {**mark.lag._asdict(), "states": states}

    def _start(self, stream: Stream, subscription: Subscription, after: DeliveredOrder | None = None) -> None:
        self._moves.start(stream, subscription, after)
        if subscription.ends:
            self._beginning[subscription] = stream
            self._has_beginning.set()

    async def _begin(self) -> None:
        """Find out where the partitions end of which the changes are watched, and which no instance serves."""
        while True:
            await self._has_beginning.wait()
            self._has_beginning.clear()
            began = list(self._beginning)
            ends = {
                state: await self._dependencies.routing.end_offsets(
                    state, {number for one in began if one.filter.state == state for number in _unknown(one)}
                )
                for state in {one.filter.state for one in began}
            }
            for one in self._beginning.keys() & set(began):
                found = {number: end for number, end in ends[one.filter.state].items() if number in _unknown(one)}
                self._moves.begin_at(self._beginning[one], one, found)
                if not _unknown(one):
                    del self._beginning[one]
            self._flush()
            if self._beginning:
                with suppress(TimeoutError):  # a new one does not wait for the others
                    async with asyncio.timeout(RETRY_S):
                        await self._has_beginning.wait()
                self._has_beginning.set()

    async def _follow_routes(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_EVERY_S)
            self.refresh()

    def _add_silent(self) -> None:
        """Once a second, add the keys that have become silent."""
        now = self._dependencies.now()
        if self._second == now // 1000:
            return
        self._second = now // 1000
        for name in self._dependencies.states:
            for subscription in self.feed.silent_subscriptions(name):
                self._scanner.add_silent(subscription, silent_until(now, subscription.filter.silent_for or 0))

    def _add(
        self, stream: Stream, name: str, wanted: SubscriptionFilter, *, current: bool, is_relayed: bool = False
    ) -> Subscription:
        stream.principal.check(wanted.state, wanted.scope)
        self._check(wanted, current=current)
        self.unsubscribe(stream, name)
        subscription = Subscription(
            name, wanted, stream, current=current, limit=self.limits.remembered, is_relayed=is_relayed
        )
        if wanted.silent_for is not None:
            until = silent_until(self._dependencies.now(), wanted.silent_for)
            self.feed.set_silent_until(subscription, until)
        stream.subscribe(subscription)
        self.feed.add(subscription)
        self._dependencies.counts.set(metrics.SUBSCRIPTIONS, self.feed.count(wanted.state), wanted.state)
        return subscription

    def _check(self, wanted: SubscriptionFilter, *, current: bool) -> None:
        """Raises ProblemError for a filter that cannot be served."""
        state = self._dependencies.states.get(wanted.state)
        if state is None:
            detail = f"{wanted.state!r} is no state: GET /v1/states lists them"
            raise ProblemError(Problem("unknown_state", detail))
        if wanted.window != "newest" and state.window is None:
            detail = f"window: {wanted.state!r} is not windowed, and has one window of a key at a time"
            raise ProblemError(Problem("bad_request", detail))
        if wanted.silent_for is not None and (not state.query.silence or wanted.window != "newest"):
            detail = f"silent_for: needs QueryOptions(silence=True) of {wanted.state!r}, and goes with window=newest"
            raise ProblemError(Problem("bad_request", detail))
        missing = [path for path, _ in wanted.where if path not in state.query.indexes]
        if current and missing:
            detail = f"{', '.join(missing)}: not indexed. Add current=false, or declare QueryOptions(indexes=…)"
            raise ProblemError(Problem("bad_request", detail))

    def _cut_off(self) -> None:
        """Disconnect the clients with the oldest changes, until a quarter of the budget is free."""
        problem = Problem("too_slow", "Reconnect and read faster: too many changes wait for all clients together")
        behind = [one for one in self._streams if one.names.waiting]
        for stream in sorted(behind, key=lambda one: one.names.lag().oldest_ms, reverse=True):
            if self._budget.used <= self._budget.limit * 3 // 4:
                break
            stream.cut_off(problem)
            self._dependencies.counts.add(metrics.CUT_OFF)

    def _end_denied(self, stream: Stream) -> None:
        """End the subscriptions that are beyond the scope of the principal."""
        for name, subscription in list(stream.subscriptions.items()):
            try:
                stream.principal.check(subscription.filter.state, subscription.filter.scope)
            except ProblemError as error:
                self.unsubscribe(stream, name)
                stream.send_first(SubscriptionDenied(name, error.problem))

    def _partitions(self, wanted: SubscriptionFilter) -> Iterable[int]:
        """The partitions of all keys that can match."""
        if wanted.key is not None:
            return [self.routing.partition(wanted.state, wanted.key)]
        return range(self._dependencies.states[wanted.state].partitions)

    def _on_added(self, stream: Stream) -> None:
        self._unflushed[stream] = None

    def _flush(self) -> None:
        """Called after a batch, so that of a key that changed twice only the latest is sent."""
        unflushed, self._unflushed = self._unflushed, {}
        for stream in unflushed:
            stream.flush()

    async def _tick(self, stream: Stream) -> None:
        """Send marks regularly. Streams that begin together send theirs at different moments."""
        counted, self._ticks = 0, (self._ticks + GOLDEN) % 1
        await asyncio.sleep(self._ticks * self.limits.mark_every_s)
        while True:
            await asyncio.sleep(self.limits.mark_every_s)
            for subscription in stream.subscriptions.values():
                self._scanner.add_expired(subscription)
            stream.mark()
            self._dependencies.counts.add(metrics.CONFLATED, by=stream.names.conflated - counted)
            counted = stream.names.conflated


def _unknown(subscription: Subscription) -> list[int]:
    """Return the partitions whose ends are not known yet."""
    return [partition for partition, end in subscription.ends.items() if end is None]
