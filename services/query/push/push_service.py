"""The push service: opens streams, starts and ends their subscriptions, and moves these with the partitions."""

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
from services.query.push.state_windows import StateWindows
from services.query.push.store_scanner import StoreScanner
from services.query.push.subscription import Subscription
from services.query.push.subscription_router import SubscriptionRouter
from services.query.store.index import silent_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from services.query.dependencies import Dependencies
    from services.query.limits import WatchLimits
    from services.query.lookup.authentication import Principal
    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.filter import SubscriptionFilter
    from services.query.push.stream_items import ProgressMark
    from services.query.store import Change, Entry, StatePartition

GOLDEN = 0.618
"""The fractional parts of its multiples are spread evenly, however many there are."""
REFRESH_EVERY_S = 0.1
"""How often the routes to the partitions are refreshed."""


class PushService:
    """All streams of this instance. It implements ChangeListener for the stores."""

    def __init__(self, dependencies: Dependencies, limits: WatchLimits) -> None:
        self.limits = limits
        self._dependencies = dependencies
        self._routing = RoutingTable(dependencies.states, dependencies.routing)
        instance = dependencies.settings.instance
        self._encoders = {
            name: AnswerEncoder(state, instance, dependencies.stores[name])
            for name, state in dependencies.states.items()
        }
        windows = {
            name: StateWindows(state, dependencies.stores[name])
            for name, state in dependencies.states.items()
            if state.window is not None
        }
        self.fanout = ChangeFanout(
            dependencies.states, self._routing, self._answer, dependencies.clock, self._present, windows
        )
        self._scanner = StoreScanner(dependencies.stores, self.fanout, self._routing, windows)
        self._relays = PeerRelays(dependencies.settings.peer_token, self._since, self._flush, dependencies.clock)
        self._router = SubscriptionRouter(dependencies, self._routing, self.fanout, self._scanner, self._relays)
        self._budget = QueueBudget(limits.all_waiting_bytes, self._cut_off)
        self._streams: dict[ClientStream, None] = {}
        self._unflushed: dict[ClientStream, None] = {}
        self._ticks = 0.0
        self._second = 0
        self._connections: Counter[str] = Counter()
        self.refresh()

    def changed(self, changes: Sequence[Change]) -> None:
        """See ChangeListener."""
        self.fanout.changed(changes)
        self._flush()

    def restarted(self, partition: StatePartition) -> None:
        """See ChangeListener."""
        self.fanout.forget(partition.state, partition.number)

    async def run(self) -> None:
        """Follow the partitions until cancelled; then end all streams."""
        try:
            while True:
                await asyncio.sleep(REFRESH_EVERY_S)
                self.refresh()
        finally:
            for stream in self._streams:
                stream.end()
            await self._relays.close()

    def refresh(self) -> None:
        """Refresh the routes to the partitions, and move the subscriptions."""
        for change in self._routing.refresh():
            for subscription in self.fanout.subscriptions(change.state):
                self._router.move(subscription, change)
        self._router.refresh_members()
        self._deliver_silent()
        for state, closed in self.fanout.pop_closed():
            for subscription in self.fanout.subscriptions(state):
                self._scanner.deliver_closed(subscription, closed)
        self._flush()
        self._dependencies.counts.set(metrics.WAITING_BYTES, self._budget.used)

    @contextmanager
    def stream(self, principal: Principal, *, relays: bool = False) -> Iterator[ClientStream]:
        """A stream for this client, until the end of the block. Raises ProblemError (429) if it has too many.

        With `relays` the client is another instance, and has room for all of its clients.
        """
        name, limit = principal.name, self.limits.connections
        if self._connections[name] >= limit and not relays:
            raise ProblemError(Problem("too_many", f"{name} has {limit} watching connections"))
        limits = self.limits.relayed() if relays else self.limits
        queue = SendQueue[Subscription](
            limits.waiting_keys, limits.waiting_bytes, self._dependencies.clock, self._budget
        )
        stream = ClientStream(principal, self._scanner, queue, self._on_put)
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
        stream: ClientStream,
        name: str,
        wanted: SubscriptionFilter,
        *,
        current: bool,
        after: DeliveredOrder | None = None,
    ) -> None:
        """Add a subscription. `current`: with the present values first. `after`: the client has this version.

        Raises ProblemError (400, 403, 404).
        """
        self._router.start(self._add(stream, name, wanted, current=current), after)

    def relay(
        self,
        stream: ClientStream,
        name: str,
        wanted: SubscriptionFilter,
        since: Mapping[int, int | None],
        *,
        current: bool,
    ) -> None:
        """Add a subscription of another instance: to what this one serves, after these offsets of the partitions."""
        subscription = self._add(stream, name, wanted, current=current)
        subscription.is_relayed = True
        self._router.start(subscription, None)
        self._router.resume(subscription, since if wanted.key is None else {})

    def resume(self, stream: ClientStream, name: str, since: Mapping[int, int | None]) -> None:
        """Deliver to another instance also what came after these offsets of the partitions."""
        if name in stream.subscriptions:
            self._router.resume(stream.subscriptions[name], since)

    def unsubscribe(self, stream: ClientStream, name: str) -> bool:
        """End a subscription; returns whether there was one."""
        subscription = stream.subscriptions.pop(name, None)
        if subscription is None:
            return False
        self._router.stop(subscription)
        self.fanout.remove(subscription)
        state = subscription.filter.state
        self._dependencies.counts.set(metrics.SUBSCRIPTIONS, self.fanout.count(state), state)
        stream.withdraw(subscription)
        return True

    def progress(self, stream: ClientStream, mark: ProgressMark) -> dict[str, Any]:
        """The members of a mark. It has positions only if everything before them was sent."""
        states: dict[str, Any] = {}
        for name in sorted({subscription.filter.state for subscription in stream.subscriptions.values()}):
            local = self._routing.local_partitions(name)
            states[name] = {
                "lag": {"records": sum(self._dependencies.routing.partition_status(name, one).lag for one in local)}
            }
            if mark.complete:
                states[name]["positions"] = {str(one): at for one, at in self.fanout.positions(name).items()}
        return {**mark.lag._asdict(), "states": states}

    def _deliver_silent(self) -> None:
        """Once a second, deliver the keys that have become silent."""
        now = self._dependencies.now()
        if self._second == now // 1000:
            return
        self._second = now // 1000
        for name in self._dependencies.states:
            for subscription in self.fanout.silent_subscriptions(name):
                self._scanner.deliver_silent(subscription, silent_until(now, subscription.filter.silent_for or 0))

    def _add(self, stream: ClientStream, name: str, wanted: SubscriptionFilter, *, current: bool) -> Subscription:
        stream.principal.check(wanted.state, wanted.scope)
        self._check(wanted, current=current)
        self.unsubscribe(stream, name)
        subscription = Subscription(name, wanted, stream, current=current, limit=self.limits.remembered)
        if wanted.silent_for is not None:
            until = silent_until(self._dependencies.now(), wanted.silent_for)
            self.fanout.set_silent_until(subscription, until)
        stream.add(subscription)
        self.fanout.add(subscription)
        self._dependencies.counts.set(metrics.SUBSCRIPTIONS, self.fanout.count(wanted.state), wanted.state)
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
        problem = Problem("too_slow", "Reconnect and read faster: too many bytes are queued for all clients together")
        behind = [one for one in self._streams if one.queue]
        for stream in sorted(behind, key=lambda one: one.queue.lag().oldest_ms, reverse=True):
            if self._budget.used <= self._budget.limit * 3 // 4:
                break
            stream.cut_off(problem)
            self._dependencies.counts.add(metrics.CUT_OFF)

    def _end_denied(self, stream: ClientStream) -> None:
        """End the subscriptions that are beyond the scope of the principal."""
        for name, subscription in list(stream.subscriptions.items()):
            try:
                stream.principal.check(subscription.filter.state, subscription.filter.scope)
            except ProblemError as error:
                self.unsubscribe(stream, name)
                stream.deny(name, error.problem)

    def _since(self, subscription: Subscription, url: str) -> Mapping[int, int | None]:
        return self._router.since(subscription, url)

    def _present(self, state: str, key: str) -> Entry | None:
        return self._dependencies.stores[state].get(key)

    def _answer(self, state: str, key: str, entry: Entry, is_closed: bool) -> bytes:  # noqa: FBT001
        """The JSON that a GET of the key returns at the moment when a client is about to receive it."""
        partition_status = self._dependencies.routing.partition_status(state, entry.partition)
        return self._encoders[state].encode(key, entry, partition_status, self._dependencies.now(), is_closed=is_closed)

    def _on_put(self, stream: ClientStream) -> None:
        self._unflushed[stream] = None

    def _flush(self) -> None:
        """Called after a batch, so that of a key that changed twice only the latest is sent."""
        unflushed, self._unflushed = self._unflushed, {}
        for stream in unflushed:
            stream.flush()

    async def _tick(self, stream: ClientStream) -> None:
        """Send marks regularly. Streams that begin together send theirs at different moments."""
        counted, self._ticks = 0, (self._ticks + GOLDEN) % 1
        await asyncio.sleep(self._ticks * self.limits.mark_every_s)
        while True:
            await asyncio.sleep(self.limits.mark_every_s)
            for subscription in stream.subscriptions.values():
                self._scanner.deliver_expired(subscription)
            stream.mark()
            self._dependencies.counts.add(metrics.CONFLATED, by=stream.queue.conflated - counted)
            counted = stream.queue.conflated
