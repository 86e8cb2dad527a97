"""The streams of the fake service: a test chooses their events and when they break."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from contracts.api.watch import WATCH_MANY
from tests.services.client.fake_service import Fake, until

if TYPE_CHECKING:
    from collections.abc import Mapping


class End(Enum):
    CLOSED = "as an instance that stops"
    ABORTED = "as a process that is killed"


@dataclass(eq=False)
class Opened:
    """One connection of a client, and the messages that it sent."""

    received: list[dict[str, Any]] = field(default_factory=list)
    queue: asyncio.Queue[bytes | End] = field(default_factory=asyncio.Queue)

    def send(self, *frames: bytes | End) -> None:
        for frame in frames:
            self.queue.put_nowait(frame)

    async def commands(self, count: int) -> list[dict[str, Any]]:
        """Wait for this number of messages of the client."""
        await until(lambda: len(self.received) >= count, "the client's messages")
        return self.received


class Streaming(Fake):
    """An instance whose streams send what a test puts into the queue of a connection."""

    def __init__(self, name: str = "q1") -> None:
        super().__init__(name)
        self.opened: list[Opened] = []

    async def correct_response(self, request: web.Request) -> web.StreamResponse:
        return await (self._watch(request) if request.path == WATCH_MANY.path else super().correct_response(request))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=["stateloop.v1"])
        await socket.prepare(request)
        opened = Opened()
        self.opened.append(opened)
        listening = asyncio.create_task(self._listen(socket, opened))
        try:
            while not isinstance(frame := await opened.queue.get(), End):
                await socket.send_str(frame.decode())
            await opened.commands(1)  # a connection with unread bytes is reset, and what was sent may be lost
            if frame is End.ABORTED and request.transport:
                request.transport.abort()
        finally:
            listening.cancel()
            await socket.close()
        return socket

    async def connection(self, number: int) -> Opened:
        """Wait until the connection of this number, from 0, is open, and return it."""
        await until(lambda: len(self.opened) > number, f"connection {number}")
        return self.opened[number]

    def routes(self) -> list[web.RouteDef]:
        return [web.get(WATCH_MANY.path, self.answer)]

    async def _listen(self, socket: web.WebSocketResponse, opened: Opened) -> None:
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                opened.received.append(json.loads(frame.data))


def message(body: Mapping[str, Any], *ids: str, kind: str = "state") -> bytes:
    """Return a message as the service writes it, by default for the first filter."""
    ids = ids or ("0",)
    if kind == "state":
        return json.dumps({"type": kind, "ids": ids, "tag": str(body["version"]), "answer": body}).encode()
    return json.dumps({"type": kind, "ids": ids, **body}).encode()
