"""The connections that are kept, and their lifetime."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from services.enrichment.calls import pool, transport
from services.enrichment.calls.transport import HttpTransport
from tests.services.enrichment.calls.calling import BOUNDS
from tests.services.enrichment.calls.straying import Straying, named
from tests.services.enrichment.in_memory import until

if TYPE_CHECKING:
    import pytest


def calling(server: Straying, redirects: int = 0) -> HttpTransport:
    return HttpTransport(server.url, replace(BOUNDS, redirects=redirects), clock=time.monotonic)


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_S", -1.0)
    server = Straying()
    async with server.serving(), calling(server) as client:
        for _ in range(2):
            await client.get("/0", 30.0)
    assert [connection for connection, _ in server.requests] == [1, 2]


async def test_the_connection_that_is_idle_for_longest_is_used_next() -> None:
    server = Straying()
    async with server.serving(), calling(server) as client:
        await asyncio.gather(client.get("/0", 30.0), client.get("/1", 30.0))
        for _ in range(4):
            await client.get("/2", 30.0)
    used = [connection for connection, target in server.requests if target == "/2"]
    assert used[0] != used[1]
    assert used[:2] == used[2:]


async def test_a_connection_whose_call_finishes_after_the_pool_is_closed() -> None:
    server = Straying(lambda target, _: [named(target)[:-1], named(target)[-1:]])
    async with server.serving():
        async with calling(server) as client:
            late = asyncio.create_task(client.get("/0", 30.0))
            await until(lambda: bool(server.requests))
        await late
        await until(lambda: not server.open)


async def test_an_origin_that_redirects_lead_to_keeps_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_ORIGINS", 1)
    others = [Straying(), Straying()]

    def moved(target: str, _: str | None) -> list[bytes]:
        to = others[int(target[1:])].url
        return [b"HTTP/1.1 302 Found\r\nLocation: %b/there\r\nContent-Length: 0\r\n\r\n" % to.encode()]

    server = Straying(moved)
    async with others[0].serving(), others[1].serving(), server.serving(), calling(server, 1) as client:
        for n in (0, 0, 1):
            assert b"/there" in (await client.get(f"/{n}", 30.0)).body
        assert [connection for connection, _ in others[0].requests] == [1, 1]
        await until(lambda: not others[0].open)  # of as many origins as there is room for
        assert others[1].open
    assert {connection for connection, _ in server.requests} == {1}
