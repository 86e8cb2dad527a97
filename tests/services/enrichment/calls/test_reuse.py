"""The connections that are reused, and their lifetime."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

import pytest

from contracts import RetryableCallError
from services.enrichment.calls import session, transport
from services.enrichment.calls.transport import HttpTransport
from tests.services.enrichment.calls.calling import BOUNDS
from tests.services.enrichment.calls.straying import Straying, named
from tests.services.enrichment.in_memory import until


def keeping(server: Straying, redirects: int = 0) -> HttpTransport:
    return HttpTransport(server.url, replace(BOUNDS, redirects=redirects), clock=time.monotonic)


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE_S", -1.0)
    server = Straying()
    async with server.serving(), keeping(server) as client:
        for _ in range(2):
            await client.get("/0", 30.0)
    assert [connection for connection, _ in server.requests] == [1, 2]


async def test_the_connection_that_is_idle_for_longest_is_used_next() -> None:
    server = Straying()
    async with server.serving(), keeping(server) as client:
        await asyncio.gather(client.get("/0", 30.0), client.get("/1", 30.0))
        for _ in range(4):
            await client.get("/2", 30.0)
    used = [connection for connection, target in server.requests if target == "/2"]
    assert used[0] != used[1]
    assert used[:2] == used[2:]


@pytest.mark.parametrize("count", [0, 1], ids=["a new connection", "a reused connection"])
async def test_a_call_in_flight_fails_when_the_transport_closes(count: int) -> None:
    server = Straying(lambda target, _: [named(target)] if target == "/0" else [])
    async with server.serving():
        async with keeping(server) as client:
            for _ in range(count):
                await client.get("/0", 30.0)
            late = asyncio.create_task(client.get("/1", 30.0))
            await until(lambda: len(server.requests) == count + 1)
        with pytest.raises(RetryableCallError, match="DisconnectedError"):
            await late
        await until(lambda: not server.open)


async def test_targets_of_redirects_keep_their_connections_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_ORIGINS", 1)
    others = [Straying(), Straying()]

    def moved(target: str, _: str | None) -> list[bytes]:
        to = others[int(target[1:])].url
        return [b"HTTP/1.1 302 Found\r\nLocation: %b/there\r\nContent-Length: 0\r\n\r\n" % to.encode()]

    server = Straying(moved)
    async with others[0].serving(), others[1].serving(), server.serving(), keeping(server, 1) as client:
        for n in (0, 1, 0, 1):
            assert b"/there" in (await client.get(f"/{n}", 30.0)).body
    assert [[connection for connection, _ in one.requests] for one in others] == [[1, 1], [1, 2]]
    assert {connection for connection, _ in server.requests} == {1}


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_a_server_may_close_a_connection_after_each_response(tls: bool) -> None:  # noqa: FBT001
    server = Straying(lambda target, _: [named(target)], closes=True)
    async with (
        server.serving(tls=tls),
        HttpTransport(server.url, BOUNDS, clock=time.monotonic, trusted=server.trusted) as client,
    ):
        for n in range(50):
            assert json.loads((await client.get(f"/{n}", 5.0)).body)["name"] == f"/{n}"
    assert len(server.requests) == 50
