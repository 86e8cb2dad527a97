"""A watch at another instance, which a test scripts: what is copied, what is ignored, and from where it resumes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from contracts.wire.partition import partition
from services.query.cluster import Member, PartitionStatus, Role
from tests.services.query.in_memory import NOW
from tests.services.query.push.serving import RARE, WITHIN_S, Client, Instance, connected, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Message = dict[str, Any]
KEY = next(key for number in range(100) if partition((key := f"key-{number}").encode(), 4) == 2)
SUBSCRIBED: Message = {"type": "subscribed", "id": "1"}
BEGUN: Message = {"type": "begun", "id": "1", "reached": {"2": 4}}
CURRENT: Message = {"type": "current", "id": "1", "partitions": [2]}
LEFT: Message = {"type": "left", "ids": ["1"], "state": "flights", "key": KEY}
FACTS = {"waiting": 3, "conflated": 2, "oldest_ms": 70}
MARK: Message = {"type": "mark", **FACTS, "states": {"flights": {"positions": {"2": 10}}}}

COMPLETE: Message = MARK | {"waiting": 0}
REMOVED: Message = {"type": "removed", "ids": ["1"], "state": "flights", "key": KEY}
ELSEWHERE: Message = REMOVED | {"key": "key-0"}
RESET: Message = {"type": "reset", "ids": ["1"], "conflated": 1}
CUT_OFF: Message = {"type": "error", "id": None, "problem": {"type": "too_slow"}}


def state(version: int, key: str = KEY) -> Message:
    answer = {"state": "flights", "key": key, "version": version, "source": {"partition": 2, "offset": 20}}
    return {"type": "state", "ids": ["1"], "tag": f"{NOW}.0.{version}", "answer": answer}


class Peer:
    """Another instance: it answers the first command on a connection with scripted messages, then closes."""

    def __init__(self, *rounds: list[Message], closes: bool = True) -> None:
        self.received: asyncio.Queue[Message] = asyncio.Queue()
        self._rounds = iter(rounds)
        self._closes = closes

    async def watch(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        messages = next(self._rounds, None)
        async for message in socket:
            self.received.put_nowait(orjson.loads(message.data))
            for scripted in messages or ():
                await socket.send_str(orjson.dumps(scripted).decode())
            if messages is not None and self._closes:
                await socket.close()
        return socket

    async def next(self) -> Message:
        """Return the next command that it received."""
        async with asyncio.timeout(WITHIN_S):
            return await self.received.get()


@asynccontextmanager
async def watching(peer: Peer, instance: Instance | None = None, **options: Any) -> AsyncIterator[Client]:
    """Serve an instance whose peer owns partition 2, with a client that watches it."""
    instance = instance or Instance(limits=replace(RARE, mark_every_s=0.05))
    application = web.Application()
    application.router.add_get("/v1/watch", peer.watch)
    async with TestServer(application) as server:
        instance.routing.others = {2: PartitionStatus(Role.ELSEWHERE, 0)}
        instance.routing.known = [Member("two", str(server.make_url("")).rstrip("/"))]
        async with instance.serving(), connected(instance) as client:
            instance.watching.refresh()
            await client.subscribe("x", **({"prefix": "key-", "current": False} | options))
            yield client


async def test_an_invalid_message_causes_one_reconnect() -> None:
    peer = Peer([{"type": "begun", "id": "1"}])
    async with watching(peer):
        for _ in range(2):
            assert (await peer.next())["type"] == "subscribe"


async def test_a_later_value_does_not_imply_delivery_of_earlier_changes() -> None:
    peer = Peer([BEGUN, SUBSCRIBED, state(1)])  # changes of other keys may still wait there
    async with watching(peer):
        assert [(await peer.next())["partitions"] for _ in range(2)] == [{"2": None}, {"2": 4}]


async def test_offsets_of_an_earlier_topic_do_not_count() -> None:
    """The other instance reads a topic that was created again: it begins before the delivered offsets."""
    peer = Peer([BEGUN, SUBSCRIBED, CURRENT, MARK], [BEGUN, SUBSCRIBED, CURRENT], [])
    async with watching(peer, current=True):
        assert [(await peer.next())["partitions"] for _ in range(3)] == [{"2": None}, {"2": 9}, {"2": -1}]


async def test_an_instance_does_not_move_what_another_one_serves() -> None:
    """Its message was under way when the partition moved."""
    instance = Instance(limits=RARE)
    other = next(key for number in range(100) if partition((key := f"key-{number}").encode(), 4) == 3)
    instance.put(other, 1)
    offset = instance.offset
    peer = Peer([BEGUN | {"reached": {"2": 4, "3": offset - 1}}, SUBSCRIBED], closes=False)
    async with watching(peer, instance):
        await peer.next()
        (stream,) = instance.watching._streams  # noqa: SLF001  # what was received shows nowhere else
        (subscription,) = stream.subscriptions.values()
        await eventually(lambda: subscription.begun.get(2) == 4)
        instance.routing.others[3] = PartitionStatus(Role.ELSEWHERE, 0)
        instance.watching.refresh()
        assert (await peer.next())["partitions"] == {"2": 4, "3": offset}


async def test_a_mark_counts_only_after_the_response() -> None:
    peer = Peer([BEGUN, MARK, SUBSCRIBED], [SUBSCRIBED, MARK])
    async with watching(peer):
        offsets = [(await peer.next())["partitions"] for _ in range(3)]
        assert offsets == [{"2": None}, {"2": 4}, {"2": 9}]


async def test_events_are_copied_for_what_the_client_has() -> None:
    old = state(3) | {"tag": f"{NOW}.0.1"}
    script = [BEGUN, SUBSCRIBED, LEFT, state(2), state(2), old, state(3, "other") | {"ids": ["2"]}, state(3)]
    async with watching(Peer(script, closes=False), where={"state.status": "landed"}) as client:
        assert [(await client.next())["answer"]["version"] for _ in range(2)] == [2, 3]


async def test_events_before_the_response_are_of_an_earlier_command_and_ignored() -> None:
    script = [BEGUN, state(1), SUBSCRIBED, state(2)]
    async with watching(Peer(script, closes=False)) as client:
        assert (await client.next())["answer"]["version"] == 2


async def test_events_of_partitions_of_other_owners_are_ignored() -> None:
    elsewhere = state(1)
    elsewhere["answer"] = elsewhere["answer"] | {"source": {"partition": 1, "offset": 20}}
    async with watching(Peer([BEGUN, SUBSCRIBED, elsewhere, state(2)], closes=False)) as client:
        assert (await client.next())["answer"]["version"] == 2


async def test_marks_include_the_lag_at_the_owner() -> None:
    async with watching(Peer([BEGUN, SUBSCRIBED, MARK], closes=False)) as client:
        while (mark := await client.next(marks=True))["waiting"] == 0:
            assert mark["type"] == "mark"
        assert {name: mark[name] for name in FACTS} == FACTS
        assert "2" not in mark["states"]["flights"]["positions"], "only of partitions of this instance"


async def test_the_end_of_the_present_values_comes_once_after_them() -> None:
    peer = Peer([BEGUN, SUBSCRIBED, state(1), CURRENT, CURRENT, state(2)], closes=False)
    async with watching(peer, current=True) as client:
        found = [await client.next() for _ in range(4)]
        assert sorted(one["partitions"] for one in found if one["type"] == "current") == [[0, 1, 3], [2]]
        assert [one["type"] for one in found if one.get("partitions") != [0, 1, 3]] == ["state", "current", "state"]


@pytest.mark.parametrize("last", [[MARK], [COMPLETE, CUT_OFF], [COMPLETE, {"type": "mark"}]])
async def test_a_client_of_many_keys_reads_again_after_a_connection_on_which_a_removal_may_be_lost(
    last: list[Message],
) -> None:
    async with watching(Peer([BEGUN, SUBSCRIBED, *last])) as client:
        assert (await client.next())["type"] == "reset"


@pytest.mark.parametrize(("options", "mark"), [({}, COMPLETE), ({"prefix": None, "key": KEY}, MARK)])
async def test_other_clients_continue_after_a_connection_is_lost(options: dict[str, Any], mark: Message) -> None:
    async with watching(Peer([BEGUN, SUBSCRIBED, MARK, mark], [SUBSCRIBED, state(1)]), **options) as client:
        assert (await client.next())["answer"]["version"] == 1


@pytest.mark.parametrize("script", [[REMOVED, SUBSCRIBED], [RESET, SUBSCRIBED], [SUBSCRIBED, ELSEWHERE]])
async def test_a_client_of_many_keys_reads_again_after_a_removal_of_an_earlier_command_or_route(
    script: list[Message],
) -> None:
    async with watching(Peer([BEGUN, *script, state(1)], closes=False)) as client:
        assert (await client.next())["type"] == "reset"
