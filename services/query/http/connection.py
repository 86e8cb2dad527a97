"""Connections: one answers by the fast path until a request needs aiohttp, which then has it for good."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from aiohttp import web
from typing_extensions import override

from services.query.http.fast_path import REQUEST_LINE
from services.query.http.responses import problem_response
from services.query.http.unread_timer import UnreadTimer
from services.query.lookup.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from services.query.http.fast_path import FastPath
    from services.query.lookup.rate_limit import RateMeter

log = logging.getLogger(__name__)

REQUEST_MAX, HEAD_MAX = 64 * 1024, 8 * 1024
"""Bytes of a request, and of its head, that the fast path reads."""
END = b"\r\n\r\n"
PIPELINED_MAX = 32
"""How many requests of one read are parsed separately: as many as aiohttp queues."""
IDLE_S = 75.0
"""After how long without a request, or with unsent bytes of which the client reads nothing, a connection is closed."""
REQUESTS_PER_TURN = 8
"""How many requests of aiohttp begin in one turn of the event loop: one takes 150 µs."""


class RequestPacer:
    """Starts requests in their order of arrival, a few in each turn of the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def next(self) -> None:
        """Wait until the request may start."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._start)
        self._waiting.append(loop.create_future())
        await self._waiting[-1]

    def _start(self) -> None:
        for _ in range(min(REQUESTS_PER_TURN, len(self._waiting))):
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._start)


class AiohttpConnection(web.RequestHandler):
    """A connection that aiohttp answers. It queues 32 requests, and then stops reading."""

    __slots__ = ("unread",)
    unread: UnreadTimer

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.unread = UnreadTimer(cast("asyncio.Transport", transport), IDLE_S)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self.unread.cancel()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        """Feed the parser one request at a time: it drops those that precede an invalid one in the same read.

        A cut within a body does no harm.
        """
        start = 0
        for _ in range(PIPELINED_MAX):
            end = data.find(END, start)
            if end < 0 or end + len(END) == len(data):
                break
            super().data_received(data[start : end + len(END)])
            start = end + len(END)
        super().data_received(data[start:])

    @override
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to data that is not HTTP: a problem, without the texts and the name of aiohttp."""
        log.debug("not HTTP", exc_info=exc)
        response = problem_response(Problem("bad_request", "The request is not valid HTTP/1.1")).response()
        response.headers["Server"] = "stateloop"
        response.force_close()
        return response


class FastConnection(asyncio.Protocol):
    """Answers one request per read, so that the work of one turn and the buffer are bounded.

    It reads nothing while a request waits for other instances. `hand_over` makes the protocol that takes over the
    connection, for good, at the first request that the fast path does not answer, or that does not arrive alone and
    in one piece. Only its body may arrive later.
    """

    _transport: asyncio.Transport
    _meter: RateMeter
    _timer: asyncio.TimerHandle
    _unread: UnreadTimer

    def __init__(
        self, fast_path: FastPath, opened: set[FastConnection], hand_over: Callable[[], asyncio.Protocol]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._fast_path = fast_path
        self._opened = opened
        self._hand_over = hand_over
        self._active = self._loop.time()
        self._partial = bytearray()
        """A request whose body is incomplete."""
        self._length = 0
        """The length of that request."""
        self.waiting: asyncio.Task[None] | None = None
        """Writes the response to a request that waits for other instances."""
        self._is_full = False
        """Whether the client does not read its responses."""
        self._is_closing = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        peer = transport.get_extra_info("peername")
        self._meter = self._fast_path.address_meter(peer[0] if peer else "")
        self._timer = self._loop.call_later(IDLE_S, self._expire)
        self._unread = UnreadTimer(self._transport, IDLE_S)
        self._opened.add(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    @override
    def data_received(self, data: bytes) -> None:
        if self._partial:
            self._partial += data
            if len(self._partial) < self._length:
                return
            data = bytes(self._partial)
            self._partial.clear()
        answer = self._answer(data)
        if isinstance(answer, bytes):
            self._active = self._loop.time()
            self._transport.write(answer)
        elif answer is not None:
            self.waiting = self._loop.create_task(self._write_later(answer))
            self._read_if_possible()
        elif not self._partial:
            self._leave()
            protocol = self._hand_over()
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(data)

    @override
    def pause_writing(self) -> None:
        """Stop reading requests: the client does not read its responses."""
        self._is_full = True
        self._read_if_possible()

    @override
    def resume_writing(self) -> None:
        self._is_full = False
        self._read_if_possible()

    def close(self) -> None:
        """Close it, after the response to a request that waits."""
        self._is_closing = True
        if self.waiting is None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        self._transport.abort()

    def _read_if_possible(self) -> None:
        """Read requests unless one waits, or the client does not read its responses."""
        if self._is_full or self.waiting is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    async def _write_later(self, answer: Coroutine[Any, Any, bytes]) -> None:
        response = await answer
        self._active, self.waiting = self._loop.time(), None
        if self._transport.is_closing():
            return
        self._transport.write(response)
        if self._is_closing:
            self._transport.close()
        else:
            self._read_if_possible()

    def _answer(self, data: bytes) -> bytes | Coroutine[Any, Any, bytes] | None:
        """The response; None: the body is incomplete, or aiohttp must answer."""
        end = data.find(END)
        line = REQUEST_LINE.match(data) if 0 <= end <= HEAD_MAX else None
        caller = self._fast_path.caller(data[line.end() - 2 : end + 4]) if line else None
        if line is None or caller is None:
            return None
        length = end + 4 + caller.head.length
        if len(data) < length <= REQUEST_MAX:
            self._partial += data
            self._length = length
            return None
        if len(data) != length or caller.head.length > self._fast_path.largest_body:
            return None
        return self._fast_path.answer(line, caller, data[end + 4 :], caller.meter or self._meter)

    def _expire(self) -> None:
        """Close it after a long time without a request. While a response is made or sent, no time counts."""
        if self.waiting is not None or self._transport.get_write_buffer_size():
            self._active = self._loop.time()
        left_s = self._active + IDLE_S - self._loop.time()
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._expire)
        else:
            self._transport.abort()

    def _leave(self) -> None:
        self._timer.cancel()
        self._unread.cancel()
        self._opened.discard(self)
