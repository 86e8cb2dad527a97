"""One key as server-sent events: every rule of the protocol, over HTTP."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import orjson
import pytest
from aiohttp import ClientSession
from yarl import URL

from contracts.metrics import query as names
from contracts.model.named_state import QueryOptions
from services.query.cluster import PartitionStatus, Role
from tests.services.query.in_memory import NOW, a_state
from tests.services.query.push.serving import QUICK, WITHIN_S, Events, Instance, eventually, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATH = "/v1/states/flights/AA%2F1/watch"
KEY = "AA/1"


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    async with Instance(a_state(lifetime=timedelta(hours=1), query=QueryOptions(history=3))).serving() as found:
        yield found


async def test_a_key_is_sent_with_its_value_and_changes(instance: Instance) -> None:
    instance.change(KEY, 1)
    async with watching(instance, PATH) as events:
        first = await events.next()
        assert first[:2] == ("state", f"{NOW}.0.1")
        assert (first.data["key"], first.data["version"], first.data["value"]) == (KEY, 1, {"v": 1})
        instance.change("other", 1)
        instance.change(KEY, 2)
        assert (await events.next())[:2] == ("state", f"{NOW}.0.2")
        assert events.response.headers["Content-Type"] == "text/event-stream"
        assert events.response.headers["Cache-Control"] == "no-store"
    assert instance.dependencies.counts.get(names.DELIVERED, "sse") == 2


async def test_a_client_of_http_1_0_receives_no_chunks(instance: Instance) -> None:
    instance.change(KEY, 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", URL(instance.base).port)
    async with asyncio.timeout(WITHIN_S):
        writer.write(f"GET {PATH} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        assert b"chunked" not in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readuntil(b"\n\n") == b"retry: 1000\n\n"
        assert (await reader.readuntil(b"\n\n")).startswith(b"event: state\nid: ")
        instance.change(KEY, 2)
        assert (await reader.readuntil(b"\n\n")).startswith(b"event: state\nid: ")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("key", ["a/b c?d#e", "ключ", "%2F", "%252F", "{x}", "a%b", "+&=", "'\"\\"])
async def test_a_key_may_be_any_text(instance: Instance, key: str) -> None:
    instance.change(key, 1)
    async with ClientSession(instance.base) as session:
        path = URL(f"{instance.base}/v1/states/flights/{quote(key, safe='')}/watch", encoded=True)
        async with session.get(path) as response:
            assert response.status == 200
            event = await Events(response).next()
    assert (event.event, event.data["key"]) == ("state", key)


async def test_without_the_current_value_only_changes_are_sent(instance: Instance) -> None:
    instance.change(KEY, 1)
    async with watching(instance, PATH + "?current=false") as events:
        instance.change(KEY, 2)
        assert (await events.next()).id == f"{NOW}.0.2"


async def test_a_change_during_a_read_is_sent_once_and_in_order(instance: Instance) -> None:
    """The store has the change already; it is fanned out only after the client has read it."""
    late = [instance.put(KEY, 1), instance.put(KEY, 2)]
    async with watching(instance, PATH) as events:
        assert (await events.next()).id == f"{NOW}.0.2"
        instance.watching.changed(late)
        instance.change(KEY, 3)
        assert (await events.next()).id == f"{NOW}.0.3"


async def test_a_reconnected_client_resumes_after_its_last_event(instance: Instance) -> None:
    for version in range(1, 6):
        instance.change(KEY, version)
    async with watching(instance, PATH, **{"Last-Event-ID": f"{NOW}.0.3"}) as events:
        assert [(await events.next()).id for _ in range(2)] == [f"{NOW}.0.4", f"{NOW}.0.5"]
    async with watching(instance, PATH, **{"Last-Event-ID": f"{NOW}.0.1"}) as events:
        assert [(await events.next()).id for _ in range(3)] == [f"{NOW}.0.3", f"{NOW}.0.4", f"{NOW}.0.5"]
    async with watching(instance, PATH + "?current=false", **{"Last-Event-ID": f"{NOW}.0.5"}) as events:
        instance.change(KEY, 6)
        assert (await events.next()).id == f"{NOW}.0.6"


async def test_a_key_that_started_again_meanwhile_is_sent_with_its_lower_version(instance: Instance) -> None:
    instance.change(KEY, 5)
    instance.watching.changed([instance.remove(KEY)])
    instance.change(KEY, 1)
    async with watching(instance, PATH, **{"Last-Event-ID": f"{NOW}.0.5"}) as events:
        assert (await events.next()).id == f"{NOW}.0.1"
        instance.change(KEY, 2)
        assert (await events.next()).id == f"{NOW}.0.2"


async def test_a_client_ahead_of_this_instance_receives_nothing_older(instance: Instance) -> None:
    instance.change(KEY, 4)
    own, instance.routing.own = instance.routing.own, PartitionStatus(Role.ELSEWHERE, 0)  # it was frozen, say
    async with watching(instance, PATH, **{"Last-Event-ID": f"{NOW}.0.5"}) as events:
        instance.routing.own = own
        instance.change(KEY, 5)
        instance.change(KEY, 6)
        assert (await events.next()).id == f"{NOW}.0.6"


async def test_a_never_seen_key_can_be_watched(instance: Instance) -> None:
    async with watching(instance, PATH) as events:
        assert await events.next() == ("never_seen", None, {"state": "flights", "key": KEY})
        instance.change(KEY, 1)
        assert (await events.next()).id == f"{NOW}.0.1"


async def test_a_removed_key_is_reported_and_may_reappear(instance: Instance) -> None:
    instance.change(KEY, 5)
    async with watching(instance, PATH) as events:
        await events.next()
        instance.watching.changed([instance.remove(KEY)])
        assert await events.next() == ("removed", None, {"state": "flights", "key": KEY})
        instance.change(KEY, 1)
        assert (await events.next()).id == f"{NOW}.0.1"


async def test_an_expired_window_is_reported_once_and_the_next_one_follows() -> None:
    async with Instance(a_state(lifetime=timedelta(hours=1)), limits=QUICK).serving() as instance:
        late = [instance.put(KEY, 1), instance.put(KEY, 2)]
        async with watching(instance, PATH) as events:
            assert (await events.next()).id == f"{NOW}.0.2"
            instance.store().advance_watermark(NOW + 3_600_001)
            assert await events.next() == ("expired", None, {"state": "flights", "key": KEY})
            instance.watching.changed(late)
            assert [(await events.next(marks=True)).event for _ in range(3)] == ["mark"] * 3
            instance.change(KEY, 1, window_start=NOW + 3_600_000)
            assert (await events.next()).id == f"{NOW + 3_600_000}.0.1"
        instance.store().advance_watermark(NOW + 8_000_000)
        async with watching(instance, PATH) as events:
            assert (await events.next()).event == "expired"


async def test_marks_report_lag_and_positions_without_an_id() -> None:
    async with Instance(limits=QUICK).serving() as instance:
        instance.change(KEY, 1)
        instance.routing.own = PartitionStatus(Role.OWNER, 7)
        async with watching(instance, PATH) as events:
            await events.next()
            mark = await events.next(marks=True)
            while not mark.data["states"]["flights"].get("positions"):
                mark = await events.next(marks=True)
            partition = str(instance.watching.routing.partition("flights", KEY))
            lag = {"records": 28}
            assert mark[:2] == ("mark", None)
            assert mark.data["states"] == {"flights": {"lag": lag, "positions": {partition: instance.offset + 1}}}
            assert (mark.data["waiting"], mark.data["conflated"], mark.data["oldest_ms"]) == (0, 0, 0)


async def test_changes_of_a_partition_that_catches_up_are_sent_afterwards(instance: Instance) -> None:
    instance.change(KEY, 3)
    async with watching(instance, PATH) as events:
        await events.next()
        instance.routing.own = PartitionStatus(Role.CATCHING_UP, 9)
        instance.watching.refresh()
        for version in (4, 5):
            instance.change(KEY, version)
        instance.routing.own = PartitionStatus(Role.OWNER, 0)
        assert (await events.next()).id == f"{NOW}.0.5"
        instance.change(KEY, 6)
        assert (await events.next()).id == f"{NOW}.0.6"


async def test_a_value_with_line_breaks_is_one_event(instance: Instance) -> None:
    instance.store().put(KEY, partition=instance.watching.routing.partition("flights", KEY), value=b'{\n "v":\r\n 1}')
    async with watching(instance, PATH) as events:
        assert (await events.next()).data["value"] == {"v": 1}


@pytest.mark.parametrize(
    ("path", "headers", "status", "kind"),
    [
        ("/v1/states/trains/AA%2F1/watch", {}, 404, "unknown_state"),
        (PATH + "?current=yes", {}, 400, "bad_request"),
        (PATH, {"Last-Event-ID": "yesterday"}, 400, "bad_request"),
        (PATH, {"Last-Event-ID": "-99999999999999.0.1"}, 400, "bad_request"),
    ],
)
async def test_an_invalid_watch_is_rejected(
    instance: Instance, path: str, headers: dict[str, str], status: int, kind: str
) -> None:
    async with ClientSession(instance.base) as session, session.get(path, headers=headers) as response:
        assert (response.status, orjson.loads(await response.read())["type"]) == (status, kind)
    assert instance.subscriptions() == 0


async def test_a_closed_stream_is_cleaned_up() -> None:
    async with Instance(limits=QUICK).serving() as instance:
        async with watching(instance, PATH):
            await eventually(lambda: instance.dependencies.counts.get(names.STREAMS) == 1)
            assert instance.subscriptions() == 1
        await eventually(lambda: instance.dependencies.counts.get(names.STREAMS) == 0)
        assert instance.subscriptions() == 0


async def test_streams_end_when_the_service_does() -> None:
    async with Instance().serving() as instance, watching(instance, PATH) as events:
        await events.next()
        stopping = asyncio.create_task(_stop(instance))
        with pytest.raises(EOFError):
            await events.next()
        await stopping


async def _stop(instance: Instance) -> None:
    running = asyncio.create_task(instance.watching.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_rebuilt_state_is_sent_and_earlier_epochs_are_not(instance: Instance) -> None:
    instance.change(KEY, 61, epoch=100)
    async with watching(instance, PATH) as events:
        assert (await events.next()).id == f"{NOW}.100.61"
        instance.change(KEY, 1, epoch=200)
        event = await events.next()
        assert (event.id, event.data["epoch"], event.data["version"]) == (f"{NOW}.200.1", 200, 1)
        instance.change(KEY, 62, epoch=100)
        instance.change(KEY, 2, epoch=200)
        assert (await events.next()).id == f"{NOW}.200.2"
    async with watching(instance, PATH, **{"Last-Event-ID": f"{NOW}.100.61"}) as events:
        assert [(await events.next()).id for _ in range(2)] == [f"{NOW}.200.1", f"{NOW}.200.2"]
