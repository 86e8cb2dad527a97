"""Many subscriptions on one WebSocket: every rule of the protocol, over HTTP."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64encode
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError

from contracts.metrics import query as names
from contracts.model.named_state import QueryOptions
from services.query.cluster import PartitionStatus, Role
from services.query.http import websocket
from services.query.http.peer_client import FORWARDED
from services.query.layout import layout_header
from services.query.push.peer_connections import PeerConnections
from services.query.push.routing_table import RoutingTable
from tests.services.query.in_memory import NOW, a_state
from tests.services.query.push.serving import QUICK, RARE, Instance, connected, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECRET = "a-secret-of-a-dashboard"  # noqa: S105  # opens nothing
LANDED = {"state": {"status": "landed"}}
FLYING = {"state": {"status": "flying"}}


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    async with Instance(a_state(query=QueryOptions(indexes=("state.status",)))).serving() as found:
        yield found


async def test_a_key_is_sent_with_its_value_and_changes(instance: Instance) -> None:
    instance.change("a", 1)
    async with connected(instance) as client:
        assert await client.subscribe("one", key="a") == {"type": "subscribed", "id": "one"}
        first = await client.next()
        assert (first["type"], first["ids"], first["tag"]) == ("state", ["one"], f"{NOW}.0.1")
        assert first["answer"]["value"] == {"v": 1}
        current = await client.next()
        assert (current["type"], current["id"], len(current["partitions"])) == ("current", "one", 1)
        instance.change("a", 2)
        assert (await client.next())["tag"] == f"{NOW}.0.2"


async def test_all_keys_of_a_prefix_are_sent_by_page_and_then_changes(instance: Instance) -> None:
    for number in range(350):
        instance.change(f"x{number:03}", 1)
    instance.change("y", 1)
    async with connected(instance) as client:
        await client.subscribe("all", prefix="x")
        messages = await client.until("current")
        assert [one["answer"]["key"] for one in messages[:-1]] == [f"x{number:03}" for number in range(350)]
        assert messages[-1]["partitions"] == [0, 1, 2, 3]
        instance.change("y", 2)
        instance.change("x007", 2)
        assert (await client.next())["answer"]["key"] == "x007"


async def test_changes_during_paging_are_neither_missed_nor_reordered(instance: Instance) -> None:
    for number in range(300):
        instance.change(f"x{number:03}", 1)
    async with connected(instance) as client:
        late = [instance.put(f"x{number:03}", version) for version in (2, 3) for number in range(300)]
        await client.subscribe("all", prefix="x")
        instance.watching.changed(late)
        latest: dict[str, int] = {}
        for one in (await client.until("current"))[:-1]:
            key, version = one["answer"]["key"], one["answer"]["version"]
            assert version > latest.get(key, 0)
            latest[key] = version
        assert latest == {f"x{number:03}": 3 for number in range(300)}


async def test_a_filter_reports_matches_and_departures(instance: Instance) -> None:
    instance.change("a", 1, LANDED)
    instance.change("b", 1, FLYING)
    async with connected(instance) as client:
        await client.subscribe("landed", where={"state.status": "landed"})
        assert [one.get("answer", {}).get("key") for one in await client.until("current")] == ["a", None]
        instance.change("b", 2, FLYING)
        instance.change("b", 3, LANDED)
        assert (await client.next())["answer"]["key"] == "b"
        instance.change("a", 2, FLYING)
        assert await client.next() == {"type": "left", "ids": ["landed"], "state": "flights", "key": "a"}
        instance.change("a", 3, FLYING)
        instance.watching.changed([instance.remove("a"), instance.remove("b")])
        assert await client.next() == {"type": "removed", "ids": ["landed"], "state": "flights", "key": "b"}


async def test_a_filter_without_index_receives_changes(instance: Instance) -> None:
    async with connected(instance) as client:
        refused = await client.subscribe("delay", where={"state.delay": "7"})
        assert (refused["type"], refused["id"], refused["problem"]["type"]) == ("error", "delay", "bad_request")
        assert "current=false" in refused["problem"]["detail"]
        await client.subscribe("delay", where={"state.delay": "7"}, prefix="a", current=False)
        for key, delay in (("a1", 6), ("b1", 7), ("a2", 7)):
            instance.change(key, 1, {"state": {"delay": delay}})
        assert (await client.next())["answer"]["key"] == "a2"


async def test_a_key_of_two_subscriptions_is_sent_once(instance: Instance) -> None:
    async with connected(instance) as client:
        await client.subscribe("key", key="a", current=False)
        await client.subscribe("all", prefix="", current=False)
        instance.change("a", 1)
        assert (await client.next())["ids"] == ["key", "all"]
        await client.send(type="unsubscribe", id="all")
        assert await client.next() == {"type": "unsubscribed", "id": "all"}
        instance.change("a", 2)
        assert (await client.next())["ids"] == ["key"]


async def test_a_reused_id_replaces_the_subscription(instance: Instance) -> None:
    async with connected(instance) as client:
        await client.subscribe("one", key="a", current=False)
        await client.subscribe("one", key="b", current=False)
        instance.change("a", 1)
        instance.change("b", 1)
        assert (await client.next())["answer"]["key"] == "b"
    await eventually(lambda: instance.subscriptions() == 0)


async def test_a_version_that_the_client_has_is_not_sent_again(instance: Instance) -> None:
    instance.change("a", 1)
    async with connected(instance) as client:
        await client.subscribe("one", key="a", after=f"{NOW}.0.1")
        assert (await client.next())["type"] == "current"
        instance.change("a", 2)
        assert (await client.next())["tag"] == f"{NOW}.0.2"


@pytest.mark.parametrize(
    "command",
    [
        "no JSON",
        '{"type":"destroy","id":"x"}',
        '{"type":"subscribe","id":"x","state":"flights"}',
        '{"type":"subscribe","id":"x","state":"flights","key":"a","prefix":"b"}',
        '{"type":"subscribe","id":"x","state":"flights","key":"a","wehre":{}}',
        '{"type":"subscribe","id":"x","state":"flights","prefix":"","where":{"a..b":"c"}}',
        '{"type":"subscribe","id":"x","state":"flights","prefix":"","after":"1.1"}',
        '{"type":"subscribe","id":"x","state":"flights","key":"a","after":"-99999999999999.0.1"}',
    ],
)
async def test_an_invalid_command_is_reported_and_others_continue(instance: Instance, command: str) -> None:
    async with connected(instance) as client:
        await client.socket.send_str(command)
        refused = await client.next()
        assert (refused["type"], refused["problem"]["type"]) == ("error", "bad_request")
        assert (await client.subscribe("x", key="a"))["type"] == "subscribed"


async def test_an_unknown_state_is_reported(instance: Instance) -> None:
    async with connected(instance) as client:
        assert (await client.subscribe("x", key="a", state="trains"))["problem"]["type"] == "unknown_state"


async def test_marks_cover_the_watched_states() -> None:
    async with Instance(limits=QUICK).serving() as instance, connected(instance) as client:
        instance.change("a", 1)
        assert (await client.next(marks=True)).items() >= {"type": "mark", "states": {}, "waiting": 0}.items()
        await client.subscribe("x", key="a")
        mark = (await client.until("mark"))[-1]
        at = instance.offset + 1
        assert mark["states"]["flights"]["positions"] == {str(instance.watching.routing.partition("flights", "a")): at}


async def test_partitions_that_move_here_resume_at_their_offset(instance: Instance) -> None:
    for key in ("a", "b", "c"):
        instance.change(key, 1)
    async with connected(instance) as client:
        await client.subscribe("all", prefix="")
        await client.until("current")
        instance.routing.own = PartitionStatus(Role.ELSEWHERE, 0)
        instance.watching.refresh()
        instance.change("b", 2)
        instance.change("b", 3)
        instance.routing.own = PartitionStatus(Role.OWNER, 0)
        again = await client.next()
        assert (again["answer"]["key"], again["answer"]["version"]) == ("b", 3)
        instance.change("c", 2)
        assert (await client.next())["answer"]["key"] == "c"


async def test_subscriptions_and_connections_are_limited() -> None:
    limits = replace(RARE, subscriptions=2, connections=1)
    async with Instance(limits=limits).serving() as instance, connected(instance) as client:
        for name in ("one", "two"):
            assert (await client.subscribe(name, key=name, current=False))["type"] == "subscribed"
        assert (await client.subscribe("three", key="x"))["problem"]["type"] == "too_many"
        assert (await client.subscribe("two", key="x", current=False))["type"] == "subscribed"
        with pytest.raises(WSServerHandshakeError, match="429") as refused:
            async with connected(instance):
                pass
        assert refused.value.headers is not None
        assert refused.value.headers["Retry-After"] == "1"
    await eventually(lambda: instance.dependencies.counts.get(names.STREAMS) == 0)


async def test_a_message_that_is_too_long_closes_the_connection() -> None:
    async with Instance(limits=replace(RARE, message_bytes=1024)).serving() as instance, connected(instance) as client:
        await client.send(type="subscribe", id="x", state="flights", key="k" * 2000)
        assert (await client.socket.receive()).data == 1009


async def test_binary_messages_are_rejected(instance: Instance) -> None:
    async with connected(instance) as client:
        await client.socket.send_bytes(b"{}")
        assert (await client.socket.receive()).data == 1003


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Instance]:
    tokens = tmp_path / "tokens.json"
    written = {"name": "dashboard", "token": SECRET, "states": ["flights"], "keys": ["AA/"]}
    tokens.write_text(json.dumps({"tokens": [written]}))
    async with Instance(a_state(), a_state("gates"), tokens=tokens).serving() as found:
        yield found


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"key": "AA/1"}, "subscribed"),
        ({"prefix": "AA/1"}, "subscribed"),
        ({"key": "UA/1"}, "error"),
        ({"prefix": ""}, "error"),
        ({"where": {"a": "b"}, "current": False}, "error"),
        ({"where": {"a": "b"}, "prefix": "AA/", "current": False}, "subscribed"),
        ({"key": "AA/1", "state": "gates"}, "error"),
    ],
)
async def test_the_scope_is_checked_for_every_subscription(
    guarded: Instance, options: dict[str, Any], answer: str
) -> None:
    async with connected(guarded, headers={"Authorization": f"Bearer {SECRET}"}) as client:
        message = await client.subscribe("x", **options)
        assert message["type"] == answer
        assert answer == "subscribed" or message["problem"]["type"] == "not_yours"


async def test_a_page_sends_its_token_as_a_subprotocol_that_is_not_echoed(guarded: Instance) -> None:
    token = urlsafe_b64encode(SECRET.encode()).decode().rstrip("=")
    async with connected(guarded, protocols=("stateloop.v1", f"stateloop.bearer.{token}")) as client:
        assert client.socket.protocol == "stateloop.v1"
        assert (await client.subscribe("x", key="AA/1"))["type"] == "subscribed"
    for wrong in ("", "x", token[:-4], "=.=", urlsafe_b64encode(b"\xff\xfe").decode().rstrip("=")):
        with pytest.raises(WSServerHandshakeError, match="401"):
            async with connected(guarded, protocols=("stateloop.v1", f"stateloop.bearer.{wrong}")):
                pass


async def test_a_page_of_another_origin_may_not_connect(instance: Instance) -> None:
    for origin in (instance.base, None):
        async with connected(instance, origin=origin) as client:
            assert (await client.subscribe("x", key="a"))["type"] == "subscribed"
    for origin in ("https://other.example", "null", instance.base + "1"):
        with pytest.raises(WSServerHandshakeError, match="403"):
            async with connected(instance, origin=origin):
                pass


async def test_a_page_of_a_configured_origin_may_connect() -> None:
    page = "https://console.example"
    async with Instance(origins=(page,)).serving() as instance, connected(instance, origin=page) as client:
        assert (await client.subscribe("x", key="a"))["type"] == "subscribed"


async def test_a_plain_request_is_rejected_with_a_hint(instance: Instance) -> None:
    async with ClientSession(instance.base) as session, session.get("/v1/watch") as response:
        assert (response.status, (await response.json(content_type=None))["type"]) == (400, "bad_request")


async def test_connections_end_when_the_service_does() -> None:
    async with Instance().serving() as instance, connected(instance) as client:
        running = asyncio.create_task(instance.watching.run())
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ended = await client.socket.receive()
        assert (ended.type, ended.data) == (WSMsgType.CLOSE, 1001)


@pytest.mark.parametrize(("headers", "is_pinged"), [({}, True), ({FORWARDED: "1"}, False)])
async def test_another_instance_is_not_pinged(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], *, is_pinged: bool
) -> None:
    """It answers nothing while its own client reads nothing."""
    monkeypatch.setattr(websocket, "PING_S", 0.05)
    async with (
        Instance(limits=QUICK).serving() as instance,
        connected(instance, headers=headers, autoping=False) as client,
    ):
        kinds = [(await client.socket.receive()).type for _ in range(5)]
        assert (WSMsgType.PING in kinds, kinds == [WSMsgType.TEXT] * 5) == (is_pinged, not is_pinged)


async def test_an_instance_that_uses_other_partitions_cannot_watch_here(instance: Instance) -> None:
    """It would miss the keys of the partitions that only one of them uses."""
    name, value = layout_header(instance.dependencies.states)
    async with connected(instance, headers={FORWARDED: "1", name: value}):
        pass
    with pytest.raises(WSServerHandshakeError) as refused:
        async with connected(instance, headers={FORWARDED: "1", name: f"{value}0"}):
            pass
    assert refused.value.status == 421


async def test_the_watches_of_an_instance_have_its_layout(instance: Instance) -> None:
    dependencies = instance.dependencies
    for added, is_served in ((0, True), (1, False)):
        states = {name: replace(one, partitions=one.partitions + added) for name, one in dependencies.states.items()}
        other = replace(dependencies, states=states)
        connections = PeerConnections(other, RoutingTable(states, other.routing), lambda: None)
        with nullcontext() if is_served else pytest.raises(WSServerHandshakeError):
            async with connections.connect(instance.base):
                pass
        await connections.close()


async def test_subscriptions_count_against_the_rate() -> None:
    """A subscription reads keys: repeated subscriptions must not exceed the rate of requests."""
    async with Instance(rate=5).serving() as instance, connected(instance) as client:
        messages = [await client.subscribe("one", key="a", current=False) for _ in range(100)]
        refused = [message for message in messages if message["type"] == "error"]
        assert messages[0]["type"] == "subscribed"
        assert {one["problem"]["type"] for one in refused} == {"too_many"}
        assert len(refused) > 50
        assert instance.dependencies.counts.get(names.REFUSED, "rate") == len(refused)
