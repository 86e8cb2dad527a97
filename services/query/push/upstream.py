"""Watches at other instances: a stream opens the same watch at the owner of a partition, and copies its messages."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from aiohttp import ClientError, WSMsgType

from services.query.lookup.decision import iso
from services.query.lookup.version_reference import delivered_tag, parse_tag
from services.query.push.event import Answer, EventKind, expired_order
from services.query.push.names import ClientLag
from services.query.push.stream_items import Delivery, InitialStateSent
from services.query.push.subscription import BEFORE_ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import ClientWebSocketResponse

    from services.query.push.peer_connections import PeerConnections
    from services.query.push.subscription import Subscription

log = logging.getLogger(__name__)

RETRY_S = 0.2
"""After how long a broken connection is opened again. The cluster reports when the instance is gone."""
SILENT_S = 20.0
"""After how long without a message a connection is opened again: marks come at least every 10 seconds."""
ANSWER = b'"answer":'
KINDS = frozenset(EventKind)
NO_LAG = ClientLag(0, 0, 0)


class CopyReceiver(Protocol):
    """The stream to a client, as a watch at another instance uses it."""

    @property
    def has_room(self) -> bool:
        """Whether the client has taken most of what was copied."""
        ...

    def copy(self, item: Delivery | InitialStateSent) -> None:
        """Send an item of the other instance."""
        ...

    async def wait_for_room(self) -> None:
        """Wait while the client has not taken what was copied."""
        ...

    def reset(self) -> None:
        """Tell the client to read again: changes were lost."""
        ...


class Upstream:
    """The watches of one stream at one other instance.

    The instance conflates when the client of the stream is slow: no message is read before the client has taken the
    earlier ones.
    """

    def __init__(self, url: str, stream: CopyReceiver, peers: PeerConnections) -> None:
        self.lag = NO_LAG
        """How far the stream is behind at the other instance, by its last mark."""
        self._url = url
        self._stream = stream
        self._peers = peers
        self._numbers = count(1)
        self._ids: dict[Subscription, str] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._sent: set[str] = set()
        self._pending: dict[str, None] = {}
        self._unacknowledged: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._is_behind = False
        """Whether a removal may wait at the instance, or be under way: no later watch finds it."""

    def __len__(self) -> int:
        return len(self._ids)

    def request(self, subscription: Subscription) -> None:
        """Watch all partitions of the instance, each after what the client has. Earlier messages are ignored."""
        name = self._ids.setdefault(subscription, f"{next(self._numbers)}")
        self._subscriptions[name] = subscription
        self._pending[name] = None
        self._changed.set()

    def withdraw(self, subscription: Subscription) -> None:
        """End the watch of a subscription."""
        name = self._ids.pop(subscription, None)
        if name is not None:
            del self._subscriptions[name]
            self._pending.pop(name, None)
            if name in self._sent:
                self._pending[name] = None
                self._changed.set()

    def abandon(self, subscription: Subscription) -> None:
        """Lose what waits at the instance. If that may be a removal, a client of many keys reads again."""
        if self._is_behind and subscription.filter.key is None:
            self._stream.reset()

    async def run(self) -> None:
        """Connect, and reconnect, until cancelled."""
        while True:
            try:
                async with self._peers.connect(self._url) as socket:
                    await self._converse(socket)
            except (ClientError, OSError, TimeoutError) as error:
                log.info("the watch at another instance is down", extra={"facts": {"why": str(error)}})
            except Exception:  # any other error must not leave the client without changes either
                log.exception("the watch at another instance failed and reconnects")
            self._disconnect()
            await asyncio.sleep(RETRY_S)

    def _disconnect(self) -> None:
        """Request all subscriptions again on the next connection."""
        for subscription in self._ids:
            self.abandon(subscription)
        self._is_behind = False
        self._sent.clear()
        self._unacknowledged.clear()
        self._pending = dict.fromkeys(self._subscriptions)

    async def _converse(self, socket: ClientWebSocketResponse) -> None:
        """Send commands and receive messages until either ends."""
        both = [asyncio.create_task(one(socket)) for one in (self._send, self._receive)]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            ended = await asyncio.gather(*both, return_exceptions=True)
        self._is_behind |= ended[1] is not None  # it has not received everything up to a close
        for found in ended:
            if isinstance(found, Exception):
                raise found

    async def _send(self, socket: ClientWebSocketResponse) -> None:
        while True:
            self._changed.clear()
            while self._pending:
                name = next(iter(self._pending))
                del self._pending[name]
                command = orjson.dumps(self._command(name)).decode()
                self._unacknowledged[name] += 1
                await socket.send_str(command)
            await self._changed.wait()

    async def _receive(self, socket: ClientWebSocketResponse) -> None:
        while (message := await socket.receive(SILENT_S)).type is WSMsgType.TEXT:
            self._take(message.data.encode())
            self._peers.flush()
            self._is_behind |= not self._stream.has_room
            await self._stream.wait_for_room()

    def _command(self, name: str) -> dict[str, Any]:
        """The command of this moment, so that commands are bounded however long the connection is down."""
        subscription = self._subscriptions.get(name)
        if subscription is not None:
            self._sent.add(name)
            since = {
                str(partition): offset for partition, offset in self._peers.wanted(self._url, subscription).items()
            }
            return {"type": "subscribe", "id": name, **_members(subscription), "partitions": since}
        self._sent.discard(name)
        return {"type": "unsubscribe", "id": name}

    def _take(self, raw: bytes) -> None:
        message = orjson.loads(raw)
        kind, names = message["type"], message.get("ids") or [message.get("id")]
        named = {name: self._subscriptions[name] for name in names if name in self._subscriptions}
        found = [subscription for name, subscription in named.items() if self._is_settled(name)]
        if kind in KINDS:
            taken = found if self._owns(message) else []
            self._take_event(EventKind(kind), message, raw, taken)
            if kind == EventKind.REMOVED:
                self._reset(one for one in named.values() if one not in taken and one.filter.key is None)
        elif kind in ("subscribed", "unsubscribed", "error"):
            self._acknowledge(message)
        elif kind == "begun":  # it precedes the response to its command
            self._begin(message)
        elif kind == "current":
            for subscription in found:
                self._finish_initial(subscription, message["partitions"])
        elif kind == "mark":
            self._mark(message)
        elif kind == "reset":  # it precedes responses that wait, also to commands whose names it dropped
            self._reset(named.values())

    def _is_settled(self, name: str, unacknowledged: int = 0) -> bool:
        """Whether messages are of the last command: what came before may be older than what the client has."""
        return name not in self._pending and self._unacknowledged[name] <= unacknowledged

    def _owns(self, message: dict[str, Any]) -> bool:
        """Whether the instance owns the key of an event."""
        facts = message.get("answer", message)
        partition = facts["source"]["partition"] if "source" in facts else None
        return self._peers.owns(self._url, facts["state"], facts["key"], partition)

    def _take_event(self, kind: EventKind, message: dict[str, Any], raw: bytes, found: list[Subscription]) -> None:
        """Copy an event, for the subscriptions whose client has nothing newer of the key."""
        facts = message.get("answer", message)
        if kind is EventKind.STATE:
            answer = Answer(kind, raw[raw.index(ANSWER) + len(ANSWER) : -1], message["tag"])
            order = parse_tag(answer.tag)
            ids = [one.name for one in found if order is not None and one.record_state(facts["key"], order)]
        else:
            members = {name: value for name, value in message.items() if name not in ("type", "ids")}
            answer = Answer(kind, orjson.dumps(members))
            start = _milliseconds(message.get("window_start"))
            ids = [one.name for one in found if _takes_gone(one, kind, facts["key"], start)]
        if ids:
            self._stream.copy(Delivery(answer, ids, self._peers.clock()))

    def _acknowledge(self, message: dict[str, Any]) -> None:
        name = message["id"]
        if message["type"] == "error":
            log.warning("another instance rejected a watch", extra={"facts": message["problem"]})
            self._is_behind |= name is None  # it cuts this instance off, and drops what waits
        if self._unacknowledged[name]:
            self._unacknowledged[name] -= 1

    def _begin(self, message: dict[str, Any]) -> None:
        """The instance sends these partitions from these offsets on. Present values that are wanted follow.

        Delivered offsets that are larger are of an earlier topic of this name: all records of this one are later.
        """
        name = message["id"]
        subscription = self._subscriptions.get(name)
        if subscription is None or not self._is_settled(name, 1):
            return
        reached = {int(partition): offset for partition, offset in message["reached"].items()}
        for partition in self._peers.wanted(self._url, subscription).keys() & reached:
            since = subscription.since[partition]
            subscription.begun[partition] = reached[partition]
            if since is not None and since > reached[partition]:
                subscription.since[partition] = BEFORE_ALL
            elif not subscription.current:
                subscription.complete([partition])
                if subscription.begin_at_end(partition):
                    self.request(subscription)

    def _finish_initial(self, subscription: Subscription, partitions: Iterable[int]) -> None:
        owned = self._peers.wanted(self._url, subscription).keys() & partitions
        first = {partition for partition in owned if subscription.since.get(partition) is None}
        subscription.complete(first)
        if first and subscription.current:
            self._stream.copy(InitialStateSent(subscription, first))

    def _mark(self, message: dict[str, Any]) -> None:
        """Everything before these positions was delivered."""
        self.lag = ClientLag(message["waiting"], message["conflated"], message["oldest_ms"])
        self._is_behind = self.lag.waiting > 0
        for name, subscription in self._subscriptions.items():
            if not self._is_settled(name):
                continue
            wanted = self._peers.wanted(self._url, subscription)
            positions = message["states"].get(subscription.filter.state, {}).get("positions", {})
            for partition, position in positions.items():
                since = wanted.get(int(partition))
                if since is not None:
                    subscription.since[int(partition)] = max(since, position - 1)

    def _reset(self, found: Iterable[Subscription]) -> None:
        """Changes were lost. A key is requested again; a client of many keys must read again."""
        for subscription in found:
            if subscription.filter.key is None:
                self._stream.reset()
            else:
                self.request(subscription)


class Upstreams:
    """The watches of one stream at all other instances."""

    def __init__(self, stream: CopyReceiver, peers: PeerConnections) -> None:
        self._stream = stream
        self._peers = peers
        self._upstreams: dict[str, Upstream] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._conflated = 0

    def follow(self, subscription: Subscription, changed: Iterable[str]) -> None:
        """Watch at the owners of the partitions, and anew at those among `changed`, which own more of them now."""
        routes = self._peers.routes(subscription)
        for url in sorted(routes.intersection(changed)):
            if url not in self._upstreams:
                self._upstreams[url] = Upstream(url, self._stream, self._peers)
                self._tasks[url] = asyncio.create_task(self._upstreams[url].run())
            self._upstreams[url].request(subscription)
        for url in sorted(self._upstreams.keys() - routes):
            self._withdraw(url, subscription)

    def leave(self, subscription: Subscription, url: str) -> None:
        """Note that the instance does not own a partition of the subscription any more."""
        if url in self._upstreams:
            self._upstreams[url].abandon(subscription)

    def withdraw(self, subscription: Subscription) -> None:
        """End the watches of a subscription."""
        for url in list(self._upstreams):
            self._withdraw(url, subscription)

    def lag(self, own: ClientLag) -> ClientLag:
        """How far the client is behind here and at the other instances."""
        lags = [own, *(upstream.lag for upstream in self._upstreams.values())]
        waiting, conflated = sum(lag.waiting for lag in lags), sum(lag.conflated for lag in lags)
        return ClientLag(waiting, conflated + self._conflated, max(lag.oldest_ms for lag in lags))

    def close(self) -> None:
        """End all watches."""
        for url in list(self._upstreams):
            self._close(url)

    def _withdraw(self, url: str, subscription: Subscription) -> None:
        upstream = self._upstreams[url]
        upstream.withdraw(subscription)
        if not len(upstream):
            self._conflated += upstream.lag.conflated
            self._close(url)

    def _close(self, url: str) -> None:
        del self._upstreams[url]
        self._tasks.pop(url).cancel()


def _takes_gone(subscription: Subscription, kind: EventKind, key: str, window_start: int | None) -> bool:
    """Record that a key is gone; return whether the client is told: with a condition, only of keys that it has."""
    name = subscription.delivered_key(key, window_start)
    order = subscription.delivered.get(name)
    start = order[0] if window_start is None and order is not None else window_start or 0
    if kind is EventKind.EXPIRED and order is not None and order >= expired_order(start):
        return False
    is_of_newest = subscription.filter.window == "newest" and window_start is not None
    if kind is EventKind.REMOVED and is_of_newest and not subscription.has_window(key, start):
        return subscription.has_left(key)
    subscription.record_gone(kind, name, start)
    return order is not None or subscription.filter.receives_all


def _members(subscription: Subscription) -> dict[str, Any]:
    """The members of a subscribe command. A key that was delivered is requested again: it may have changed."""
    wanted = subscription.filter
    members: dict[str, Any] = (
        {"prefix": wanted.prefix, "where": dict(wanted.where)} if wanted.key is None else {"key": wanted.key}
    )
    if wanted.window != "newest":  # an instance of an earlier release does not know the member
        members["window"] = iso(wanted.window) if isinstance(wanted.window, int) else wanted.window
    if wanted.silent_for is not None:
        members["silent_for"] = f"{wanted.silent_for}s"
    delivered = None if wanted.key is None else subscription.delivered_value(wanted.key, None)  # of no single window
    if delivered is not None:
        members["after"] = delivered_tag(delivered)
    is_started = any(since is not None for since in subscription.since.values())
    current = subscription.current or (wanted.key is not None and is_started)
    return {"state": wanted.state, **members, "current": current}


def _milliseconds(time: str | None) -> int | None:
    return None if time is None else round(datetime.fromisoformat(time).timestamp() * 1000)
