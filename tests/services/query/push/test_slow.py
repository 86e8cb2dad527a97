"""A client that reads nothing does not affect the others, and its own queue is bounded."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
import tracemalloc
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import orjson
import pytest
from aiohttp import ClientSession, TCPConnector

from contracts.metrics import query as names
from contracts.model.named_state import QueryOptions
from services.query.http.connection import AiohttpConnection
from services.query.lookup.authentication import ANONYMOUS
from services.query.push.filter import SubscriptionFilter
from tests.deadline import DEADLINE_S
from tests.services.query.in_memory import NOW, a_state
from tests.services.query.push.serving import QUICK, RARE, Events, Instance, connected, eventually, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from services.query.push.stream import Stream

OTHERS = 1000
BIG = "x" * 20_000
CLOSE = bytes([0x88, 0x80]) + b"\0" * 4
"""A masked frame that closes a WebSocket."""


@pytest.fixture
def many_files() -> Iterator[None]:
    """Allow both ends of a thousand connections."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(4096, before[1])), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@asynccontextmanager
async def silent(instance: Instance, request: bytes) -> AsyncIterator[socket.socket]:
    """A connection with a small receive buffer, on which a request was sent and nothing is read."""
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        found.setblocking(False)  # noqa: FBT003  # positional only
        host, port = instance.base.removeprefix("http://").split(":")
        loop = asyncio.get_running_loop()
        await loop.sock_connect(found, (host, int(port)))
        before = instance.subscriptions()
        await loop.sock_sendall(found, request)
        await eventually(lambda: instance.subscriptions() == before + 1)
        yield found


def requests(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def streams(instance: Instance) -> list[Stream]:
    return list(instance.watching._streams)  # noqa: SLF001  # what waits shows nowhere else at once


async def test_a_stalled_client_gets_only_the_latest_value_and_the_number_of_missed_changes() -> None:
    async with Instance(limits=QUICK).serving() as instance:
        async with silent(instance, requests("/v1/states/flights/a/watch")) as client:
            for version in range(1, 1001):
                instance.change("a", version, {"v": version, "pad": BIG})
                await asyncio.sleep(0)
            (stream,) = streams(instance)
            await eventually(lambda: stream.names.lag().oldest_ms > 200)
            assert (len(stream.names.waiting), stream.names.lag().waiting) == (1, 1)
            received = await _all_of(client, b"id: %d.0.1000\n" % NOW)
        versions = [int(line.rpartition(b".")[2]) for line in received.split(b"\n") if line.startswith(b"id: ")]
        assert versions == sorted(set(versions))
        assert (len(versions) < 100, versions[-1]) == (True, 1000)
        marks = [orjson.loads(line[6:]) for line in received.split(b"\n") if line.startswith(b'data: {"waiting')]
        assert max(mark["oldest_ms"] for mark in marks) > 200
        assert {mark["waiting"] for mark in marks if "positions" in mark["states"]["flights"]} == {0}
        assert marks[-1]["conflated"] + len(versions) == 1000


async def test_a_stalled_client_that_resumes_does_not_hold_the_earlier_versions_of_its_key() -> None:
    async with Instance(a_state(query=QueryOptions(history=50)), limits=QUICK).serving() as instance:
        for version in range(1, 51):
            instance.change("a", version, {"pad": "x" * 100_000})
        request = requests("/v1/states/flights/a/watch").removesuffix(b"\r\n")
        tracemalloc.start()
        try:
            async with silent(instance, b"%bLast-Event-ID: %d.0.10\r\n\r\n" % (request, NOW)) as client:
                assert tracemalloc.get_traced_memory()[0] < 1_000_000
                received = await _all_of(client, b"id: %d.0.50\n" % NOW)
        finally:
            tracemalloc.stop()
        versions = [int(line.rpartition(b".")[2]) for line in received.split(b"\n") if line.startswith(b"id: ")]
        assert versions == list(range(11, 51))


@pytest.mark.usefixtures("many_files")
async def test_a_stalled_client_does_not_delay_a_thousand_others() -> None:
    async with Instance().serving() as instance, AsyncExitStack() as stack:
        await stack.enter_async_context(silent(instance, requests("/v1/states/flights/slow/watch")))
        session = await stack.enter_async_context(ClientSession(instance.base, connector=TCPConnector(limit=0)))
        clients = [
            Events(await stack.enter_async_context(session.get(f"/v1/states/flights/k{number}/watch")))
            for number in range(OTHERS)
        ]
        for client in clients:
            assert (await client.next()).event == "never_seen"
        for version in range(1, 4):
            for _ in range(100):
                instance.change("slow", instance.offset + 1, {"pad": BIG})
            for number in range(OTHERS):
                instance.change(f"k{number}", version)
            events = await asyncio.gather(*(client.next() for client in clients))
            assert [event.id for event in events] == [f"{NOW}.0.{version}"] * OTHERS


def _held_for_clients() -> int:
    """Return the bytes that the code between store and clients holds: what the store writes meanwhile is its own."""
    places = ("*/services/query/push/*", "*/services/query/http/*")
    filters = [
        *(tracemalloc.Filter(inclusive=True, filename_pattern=place) for place in places),
        tracemalloc.Filter(inclusive=False, filename_pattern="*/tests/*"),
    ]
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(filters).traces)


async def test_the_queue_of_a_slow_client_is_bounded_and_reset() -> None:
    limits = replace(RARE, waiting_keys=500)
    async with Instance(limits=limits).serving() as instance, connected(instance, max_msg_size=0) as client:
        await client.subscribe("all", prefix="", current=False)
        transport: Any = client.socket._conn.transport  # type: ignore[union-attr]  # noqa: SLF001  # stops reading
        transport.pause_reading()
        (stream,) = streams(instance)
        tracemalloc.start()
        try:
            while not stream.names.has_overflowed:
                for _ in range(50):
                    instance.change(f"k{instance.offset}", 1, {"pad": BIG})
                await asyncio.sleep(0)
                assert len(stream.names.waiting) <= 500
            for _ in range(2000):
                instance.change(f"k{instance.offset}", 1, {"pad": BIG})
            assert _held_for_clients() < 4 * 1024 * 1024
        finally:
            tracemalloc.stop()
        assert (len(stream.names.waiting), instance.dependencies.counts.get(names.RESETS)) == (0, 0)
        transport.resume_reading()
        reset = (await client.until("reset"))[-1]
        assert (reset["ids"], reset["conflated"] >= 2000) == (["all"], True)
        assert not any(f"k{number}" in stream.subscriptions["all"].delivered for number in range(instance.offset))
        instance.change("k1", 2)
        assert (await client.next())["tag"] == f"{NOW}.0.2"
        assert instance.dependencies.counts.get(names.RESETS, "websocket") == 1


@pytest.mark.parametrize(("relays", "most"), [(False, 50), (True, 500)])
async def test_more_names_wait_for_another_instance(*, relays: bool, most: int) -> None:
    instance = Instance(limits=replace(RARE, waiting_keys=50))
    with instance.watching.stream(ANONYMOUS, relays=relays) as stream:
        wanted = SubscriptionFilter("flights", None, "")
        instance.watching.subscribe(stream, "all", wanted, current=False)
        for number in range(most):
            instance.change(f"k{number}", 1)
        assert (len(stream.names.waiting), stream.names.has_overflowed) == (most, False)
        instance.change("k", 1)
        assert stream.names.has_overflowed


@pytest.mark.parametrize(
    ("keys", "pad", "most"), [(600, "x" * 20_000, 250), (50, "x" * 300_000, 250), (5000, "", 250), (40, "", 3)]
)
async def test_pages_are_read_no_faster_than_the_client_reads_them(keys: int, pad: str, most: int) -> None:
    limits = replace(RARE, waiting_keys=most)
    async with Instance(limits=limits).serving() as instance, connected(instance, max_msg_size=0) as client:
        for number in range(keys):
            instance.put(f"k{number:04}", 1, {"pad": pad})
        await client.subscribe("all", prefix="")
        messages = await client.until("current")
        assert [one["answer"]["key"] for one in messages[:-1]] == [f"k{number:04}" for number in range(keys)]


def relaying(key: str) -> bytes:
    """The request of another instance, and its command in one masked frame."""
    command = {"type": "subscribe", "id": "1", "state": "flights", "key": key, "partitions": {}}
    text = orjson.dumps(command)
    mask = b"\0" * 4
    headers = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nStateloop-Hop: 1\r\n"
    key_of_handshake = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    upgrade = requests("/v1/watch").removesuffix(b"\r\n") + f"{headers}{key_of_handshake}\r\n".encode()
    return upgrade + bytes([0x81, 0x80 + len(text)]) + mask + text


@pytest.mark.parametrize("request_bytes", [requests("/v1/states/flights/a/watch"), relaying("a")])
async def test_a_client_or_instance_that_stalls_for_long_is_disconnected(request_bytes: bytes) -> None:
    async with Instance(limits=replace(QUICK, stalled_s=0.3)).serving() as instance:
        async with silent(instance, request_bytes):
            began = time.monotonic()
            for version in range(1, 1001):
                instance.change("a", version, {"pad": BIG})
                await asyncio.sleep(0)
            await eventually(lambda: not streams(instance))
            assert time.monotonic() - began >= 0.3
        async with watching(instance, "/v1/states/flights/b/watch") as events:
            assert (await events.next()).event == "never_seen"


async def test_a_closed_websocket_whose_client_reads_nothing_is_disconnected() -> None:
    """Its transport waits until all is sent."""
    original = AiohttpConnection.connection_lost
    with patch.object(AiohttpConnection, "connection_lost", autospec=True, side_effect=original) as lost:
        async with (
            Instance(limits=replace(QUICK, stalled_s=0.3)).serving() as instance,
            silent(instance, relaying("a")) as client,
        ):
            (stream,) = streams(instance)
            while not stream.names.waiting:
                instance.change("a", instance.offset + 1, {"pad": BIG})
                await asyncio.sleep(0)
            await asyncio.get_running_loop().sock_sendall(client, CLOSE)
            await eventually(lambda: not streams(instance))
            await eventually(lambda: lost.called)


async def _all_of(client: socket.socket, end: bytes) -> bytes:
    """Receive until a mark after this end, and return all bytes."""
    loop, received = asyncio.get_running_loop(), b""
    async with asyncio.timeout(DEADLINE_S):
        while end not in received or b"event: mark" not in received.partition(end)[2]:
            received += await loop.sock_recv(client, 65536)
    return received + await loop.sock_recv(client, 65536)
