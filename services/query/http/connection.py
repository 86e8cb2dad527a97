"""One connection: it answers the hot reads itself, and hands the rest of its life to aiohttp at any other request."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from aiohttp import web
from typing_extensions import override

from services.query.http.fast_path import LINE
from services.query.http.responses import problem_response
from services.query.lookup.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.http.fast_path import FastPath
    from services.query.http.request_guard import RateMeter

log = logging.getLogger(__name__)

MOST, MOST_HEAD = 64 * 1024, 8 * 1024
"""Bytes of a request, and of its head, that are answered here."""
END = b"\r\n\r\n"
PIECES = 32
"""How many requests that came at once are read apart: as many as aiohttp lets wait."""
IDLE_S = 75.0
"""How long a connection may stay without a request."""
IN_TURN = 8
"""How many requests that aiohttp has read are answered in one turn of the event loop: one takes 150 µs."""


class RequestPacer:
    """Lets requests begin in the order in which they come, so many in each turn of the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def next(self) -> None:
        """Wait until the request may begin."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._begin)
        self._waiting.append(loop.create_future())
        await self._waiting[-1]

    def _begin(self) -> None:
        for _ in range(min(IN_TURN, len(self._waiting))):
            one = self._waiting.popleft()
            if not one.done():
                one.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin)


class AiohttpConnection(web.RequestHandler):
    """A connection that aiohttp answers. It lets 32 requests wait, and then reads no further."""

    __slots__ = ()

    @override
    def data_received(self, data: bytes) -> None:
        """Feed the parser one request at a time: it drops those before one that it cannot read, if they come together.

        A cut in a body changes nothing.
        """
        start = 0
        for _ in range(PIECES):
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
        """What cannot be read as HTTP is answered like every other problem, without aiohttp's words and name."""
        log.debug("not HTTP", exc_info=exc)
        response = problem_response(Problem("bad_request", "The request is no HTTP/1.1 that is understood")).response()
        response.headers["Server"] = "stateloop"
        response.force_close()
        return response


class FastConnection(asyncio.Protocol):
    """Answers one request for each time that data comes, so the work of one turn and the buffer are bounded.

    `hand_over` makes the protocol that takes the connection, for good, at the first request that is not hot, not plain,
    not alone or not in one piece; only the body may come later.
    """

    _transport: asyncio.Transport
    _meter: RateMeter
    _timer: asyncio.TimerHandle

    def __init__(self, hot: FastPath, opened: set[FastConnection], hand_over: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        self._hot = hot
        self._opened = opened
        self._hand_over = hand_over
        self._active = self._loop.time()
        self._begun = bytearray()
        """A request whose body is not complete."""
        self._whole = 0
        """How long that request is."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        peer = transport.get_extra_info("peername")
        self._meter = self._hot.address_meter(peer[0] if peer else "")
        self._timer = self._loop.call_later(IDLE_S, self._expire)
        self._opened.add(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    @override
    def data_received(self, data: bytes) -> None:
        if self._begun:
            self._begun += data
            if len(self._begun) < self._whole:
                return
            data = bytes(self._begun)
            self._begun.clear()
        answer = self._answer(data)
        if answer is not None:
            self._active = self._loop.time()
            self._transport.write(answer)
        elif not self._begun:
            self._leave()
            protocol = self._hand_over()
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(data)

    @override
    def pause_writing(self) -> None:
        """The client does not read its answers: no further request is read."""
        self._transport.pause_reading()

    @override
    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def close(self) -> None:
        """Close it: no request is under way, since each is answered at once."""
        self._transport.close()

    def _answer(self, data: bytes) -> bytes | None:
        """The response; None: the rest of the body is still to come, or aiohttp answers."""
        end = data.find(END)
        line = LINE.match(data) if 0 <= end <= MOST_HEAD else None
        asker = self._hot.asker(data[line.end() - 2 : end + 4]) if line else None
        if line is None or asker is None:
            return None
        whole = end + 4 + asker.head.length
        if len(data) < whole <= MOST:
            self._begun += data
            self._whole = whole
            return None
        if len(data) != whole:
            return None
        return self._hot.answer(line, asker, data[end + 4 :], asker.meter or self._meter)

    def _expire(self) -> None:
        """Close it when no request was answered for long, also if that is because the client does not read."""
        left_s = self._active + IDLE_S - self._loop.time()
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._expire)
        else:
            self._transport.abort()

    def _leave(self) -> None:
        self._timer.cancel()
        self._opened.discard(self)
