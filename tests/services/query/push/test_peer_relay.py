"""A relay from a scripted instance over HTTP, with every kind of failure."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from services.query.push.filter import SubscriptionFilter
from services.query.push.peer_relay import PeerRelay
from services.query.push.subscription import Subscription
from tests.services.query.push.null_sink import NullSink
from tests.services.query.push.serving import WITHIN_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Message = dict[str, Any]
ANSWER = {"state": "flights", "key": "key-1", "source": {"partition": 2, "offset": 20}}
STATE: Message = {"type": "state", "ids": ["1"], "tag": "1.1", "answer": ANSWER}
SUBSCRIBED: Message = {"type": "subscribed", "id": "1"}
BEGUN: Message = {"type": "begun", "id": "1", "reached": {"2": 4}}
MARK: Message = {"type": "mark", "states": {"flights": {"positions": {"2": 10}}}}


class Peer:
    """Another instance: it answers the first command on a connection with scripted messages, then closes."""

    def __init__(self, *rounds: list[Message]) -> None:
        self.received: asyncio.Queue[Message] = asyncio.Queue()
        self._rounds = iter(rounds)

    async def watch(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        messages = next(self._rounds, None)
        async for message in socket:
            self.received.put_nowait(orjson.loads(message.data))
            for scripted in messages or ():
                await socket.send_str(orjson.dumps(scripted).decode())
            if messages is not None:
                await socket.close()
        return socket

    async def next(self) -> Message:
        """Return the next command that it received."""
        async with asyncio.timeout(WITHIN_S):
            return await self.received.get()


@asynccontextmanager
async def relaying(
    peer: Peer, *, on_delivered: Callable[[], None] = lambda: None, since: Callable[[Subscription], Any] | None = None
) -> AsyncIterator[tuple[PeerRelay, Subscription]]:
    """Run a relay to the peer, with one subscription."""
    one = Subscription("a", SubscriptionFilter("flights", None, "key-"), NullSink(), current=False, limit=10)
    application = web.Application()
    application.router.add_get("/v1/watch", peer.watch)
    async with TestServer(application) as server, ClientSession() as session:
        connect = partial(session.ws_connect, server.make_url("/v1/watch"))
        relay = PeerRelay(connect, since or _since, on_delivered, lambda: 0.0)
        relay.add(one)
        running = asyncio.create_task(relay.run())
        try:
            yield relay, one
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_an_invalid_message_causes_one_reconnect() -> None:
    peer = Peer([{"type": "begun", "id": "1"}])
    async with relaying(peer) as (relay, _):
        for _ in range(2):
            assert (await peer.next())["type"] == "subscribe"
        assert len(relay) == 1


async def test_a_failure_during_delivery_causes_one_reconnect() -> None:
    failures = iter([RuntimeError("a client's stream")])

    def on_delivered() -> None:
        for failure in failures:
            raise failure

    peer = Peer([SUBSCRIBED])
    async with relaying(peer, on_delivered=on_delivered):
        for _ in range(2):
            assert (await peer.next())["type"] == "subscribe"


async def test_a_failure_to_make_a_command_causes_one_reconnect() -> None:
    failures = iter([KeyError("flights")])

    def since(_: Subscription) -> dict[int, int | None]:
        for failure in failures:
            raise failure
        return {}

    peer = Peer()
    async with relaying(peer, since=since):
        assert (await peer.next())["type"] == "subscribe"


async def test_subscriptions_removed_while_disconnected_are_never_sent() -> None:
    peer = Peer([SUBSCRIBED])
    async with relaying(peer) as (relay, one):
        await peer.next()
        for _ in range(100):
            passing = Subscription("b", one.filter, NullSink(), current=False, limit=10)
            relay.add(passing)
            relay.remove(passing)
        relay.resume(one, 2)
        again = await peer.next()
        assert (again["type"], again["id"]) == ("subscribe", "1")
        last = Subscription("c", one.filter, NullSink(), current=False, limit=10)
        relay.add(last)
        assert (await peer.next())["id"] == "102"


async def test_a_later_value_does_not_imply_delivery_of_earlier_changes() -> None:
    peer = Peer(
        [SUBSCRIBED, BEGUN, STATE]
    )  # it replaced an earlier version of the key; changes of other keys may still be queued
    async with relaying(peer):
        await peer.next()
        assert (await peer.next())["partitions"] == {"2": 4}


async def test_a_mark_counts_only_after_the_subscription_is_acknowledged() -> None:
    peer = Peer([BEGUN, MARK, SUBSCRIBED], [SUBSCRIBED, MARK])
    async with relaying(peer):
        await peer.next()
        assert [(await peer.next())["partitions"] for _ in range(2)] == [{"2": 4}, {"2": 9}]


def _since(subscription: Subscription) -> dict[int, int | None]:
    return {2: subscription.delivered_offsets.get(2) if 2 in subscription.started else None}
