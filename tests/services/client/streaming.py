"""The streams of the fake service: a test chooses their events and when they break."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from tests.services.client.fake_service import Fake, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


class End(Enum):
    CLOSED = "as an instance that stops"
    ABORTED = "as a process that is killed"


@dataclass(eq=False)
class Opened:
    """One connection of a client, and the messages that it sent."""

    last_id: str | None
    path: str
    received: list[dict[str, Any]] = field(default_factory=list)
    queue: asyncio.Queue[bytes | End] = field(default_factory=asyncio.Queue)


class Streaming(Fake):
    """An instance whose streams send what a test puts into the queue of a connection."""

    def __init__(self, name: str = "q1") -> None:
        super().__init__(name)
        self.opened: list[Opened] = []

    async def correct_response(self, request: web.Request) -> web.StreamResponse:
        return await (self._stream(request) if request.path.endswith("/watch") else super().correct_response(request))

    async def watched(self, request: web.Request) -> web.StreamResponse:
        """Serve the WebSocket."""
        socket = web.WebSocketResponse(protocols=["stateloop.v1"])
        await socket.prepare(request)
        opened = Opened(None, request.path)
        self.opened.append(opened)
        listening = asyncio.create_task(self._listen(socket, opened))
        try:
            async for piece in self._pieces(opened):
                if piece is End.ABORTED and request.transport:
                    request.transport.abort()
                if isinstance(piece, End):
                    break
                await socket.send_str(piece.decode())
        finally:
            listening.cancel()
            await socket.close()
        return socket

    async def connection(self, number: int) -> Opened:
        """Wait until the connection of this number, from 0, is open, and return it."""
        await until(lambda: len(self.opened) > number, f"connection {number}")
        return self.opened[number]

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/watch", self.watched)]

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        opened = Opened(request.headers.get("Last-Event-ID"), request.raw_path)
        self.opened.append(opened)
        async for piece in self._pieces(opened):
            if piece is End.ABORTED and request.transport:
                request.transport.abort()
            if isinstance(piece, End):
                break
            await response.write(piece)
        return response

    async def _pieces(self, opened: Opened) -> AsyncIterator[bytes | End]:
        while True:
            yield await opened.queue.get()

    async def _listen(self, socket: web.WebSocketResponse, opened: Opened) -> None:
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                opened.received.append(json.loads(frame.data))


def event(body: Mapping[str, Any], kind: str = "state") -> bytes:
    """Return a server-sent event as the service writes it."""
    name = f"id: {body['version']}\n" if kind == "state" else ""
    return f"event: {kind}\n{name}data: {json.dumps(body)}\n\n".encode()


def message(body: Mapping[str, Any], *ids: str, kind: str = "state") -> bytes:
    """Return a WebSocket message as the service writes it."""
    if kind == "state":
        return json.dumps({"type": kind, "ids": ids, "tag": str(body["version"]), "answer": body}).encode()
    return json.dumps({"type": kind, "ids": ids, **body}).encode()
