"""WebSockets of clients and instances: each way keeps its order, takes time, and ends with the process of an end."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from struct import unpack_from
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from aiohttp import WSMsgType

from services.query.http.frames import LONG, SHORT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.loop import SimulationLoop

HELD_S = 0.2
"""The pause after which a way that is held looks again."""


class Message(NamedTuple):
    """A message, as aiohttp has it."""

    type: WSMsgType
    data: str = ""


OPENED, CLOSED = Message(WSMsgType.PONG), Message(WSMsgType.CLOSED)


class Way(NamedTuple):
    """How messages travel: how long one takes, whether all wait now, and how many characters an end takes unread."""

    seconds: Callable[[], float]
    is_held: Callable[[], bool]
    room: int


class SocketEnd:
    """One end. Implements what the services and their client use of the WebSockets of aiohttp, and StreamWriter."""

    def __init__(self, loop: SimulationLoop, way: Way, silence_s: float | None) -> None:
        self.other: SocketEnd = self
        self.is_closed = False
        self._loop = loop
        self._way = way
        self._silence_s = silence_s
        """The longest time without a message, which raises TimeoutError."""
        self._sent: deque[tuple[float, Message]] = deque()
        self._arrived: deque[Message] = deque()
        self._unread = 0
        """Of what this end has sent."""
        self._woken = asyncio.Event()
        self._has_room = asyncio.Event()

    # The client's end, and that of the receiving task of a service

    async def send_str(self, text: str) -> None:
        """See `ClientWebSocketResponse.send_str`."""
        self._require_open()
        self._send(Message(WSMsgType.TEXT, text))

    async def receive(self, timeout: float | None = None) -> Message:  # noqa: ASYNC109  # as aiohttp has it
        """See `ClientWebSocketResponse.receive`."""
        async with asyncio.timeout(timeout):
            while not (self._arrived or self.is_closed):
                self._woken.clear()
                await self._woken.wait()
        if not self._arrived:
            return CLOSED
        message = self._arrived.popleft()
        self.other.take_read(len(message.data))
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        if (message := await self.receive(self._silence_s)) is CLOSED:
            raise StopAsyncIteration
        return message

    async def close(self, **_: object) -> None:
        """See `WebSocketResponse.close`."""
        self.end()

    def exception(self) -> None:
        """See `ClientWebSocketResponse.exception`."""

    # StreamWriter

    @property
    def is_writable(self) -> bool:
        """See `StreamWriter.is_writable`."""
        self._require_open()
        return self._unread <= self._way.room

    def write(self, data: bytes) -> None:
        """See `StreamWriter.write`."""
        for text in _texts(data):
            self._send(Message(WSMsgType.TEXT, text))

    async def drain(self) -> None:
        """See `StreamWriter.drain`."""
        while not self.is_writable:
            self._has_room.clear()
            await self._has_room.wait()

    # The connection

    def open(self) -> None:
        """Accept the connection."""
        self._send(OPENED)

    def end(self, *, loses: bool = False) -> None:
        """End the connection, as the end of a process does. With `loses`, what is under way is lost."""
        if self.is_closed:
            return
        if loses:
            self._sent.clear()
        self._send(CLOSED)
        self._close()

    def take_read(self, size: int) -> None:
        """Note that the other end has read so much."""
        self._unread -= size
        self._has_room.set()

    def _send(self, message: Message) -> None:
        self._unread += len(message.data)
        self._sent.append((self._loop.time() + self._way.seconds(), message))
        if len(self._sent) == 1:
            self._move_at(self._sent[0][0])

    def _move_at(self, at: float) -> None:
        self._loop.call_at(at, self._move, context=Context())

    def _move(self) -> None:
        """Bring the first message to the other end."""
        if not self._sent:
            return
        if self._way.is_held():
            self._move_at(self._loop.time() + HELD_S)
            return
        _, message = self._sent.popleft()
        self.other.arrive(message)
        if self._sent:
            self._move_at(max(self._loop.time(), self._sent[0][0]))

    def arrive(self, message: Message) -> None:
        """Take a message of the other end."""
        if message is CLOSED:
            self._close()
        else:
            self._arrived.append(message)
            self._woken.set()

    def _close(self) -> None:
        self.is_closed = True
        self._woken.set()
        self._has_room.set()

    def _require_open(self) -> None:
        if self.is_closed:
            raise ConnectionResetError("the connection is closed")


def connected(loop: SimulationLoop, way: Way, silence_s: float | None) -> tuple[SocketEnd, SocketEnd]:
    """Return the ends of a client, which waits no longer than a silence for a message, and of a service."""
    client, service = SocketEnd(loop, way, silence_s), SocketEnd(loop, way, None)
    client.other, service.other = service, client
    return client, service


def _texts(data: bytes) -> Iterator[str]:
    """Yield the texts of frames of a service."""
    at = 0
    while at < len(data):
        size, head = data[at + 1], 2
        if size >= SHORT:
            form, head = ("!H", 4) if size == SHORT else ("!Q", 10)
            (size,) = unpack_from(form, data, at + 2)
        assert size < LONG << 16
        yield data[at + head : at + head + size].decode()
        at += head + size


Socket = Any
"""The type of an end where aiohttp's is declared."""
