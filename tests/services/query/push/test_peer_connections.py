"""The response that opens a WebSocket to another instance has a timeout, and what follows it has not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiohttp import SocketTimeoutError, web
from aiohttp.test_utils import TestServer

from services.query.push import peer_connections
from services.query.push.peer_connections import PeerConnections
from services.query.push.routing_table import RoutingTable
from tests.deadline import DEADLINE_S
from tests.services.query.push.serving import Instance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HANDSHAKE_S = 0.2


@pytest.fixture
async def peers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PeerConnections]:
    monkeypatch.setattr(peer_connections, "HANDSHAKE_S", HANDSHAKE_S)
    dependencies = Instance().dependencies
    connections = PeerConnections(dependencies, RoutingTable(dependencies.states, dependencies.routing), lambda: None)
    yield connections
    await connections.close()


async def test_a_peer_that_accepts_a_connection_without_a_response_is_a_timeout(peers: PeerConnections) -> None:
    ended = asyncio.Event()

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(SocketTimeoutError):
                await peers.connect(f"http://127.0.0.1:{port}")
        ended.set()


async def test_a_peer_without_changes_stays_connected(peers: PeerConnections) -> None:
    async def handle(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await asyncio.sleep(3 * HANDSHAKE_S)
        await socket.send_str("a change")
        await socket.close()
        return socket

    application = web.Application()
    application.router.add_get("/v1/watch", handle)
    async with TestServer(application) as server, peers.connect(str(server.make_url(""))) as socket:
        assert await socket.receive_str() == "a change"
