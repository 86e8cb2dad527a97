"""One connection: it answers the hot reads itself, and hands every other request, whole, to aiohttp's protocol."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from aiohttp.web_protocol import RequestHandler
from typing_extensions import override

from services.query.api.hot import LINE
from services.query.api.problems import Problem
from services.query.api.reply import told

if TYPE_CHECKING:
    import asyncio

    from aiohttp.web_request import BaseRequest
    from aiohttp.web_response import StreamResponse
    from aiohttp.web_server import Server

    from services.query.api.gate import Meter
    from services.query.api.hot import Hot

log = logging.getLogger(__name__)

MOST, MOST_HEAD = 64 * 1024, 8 * 1024
"""Bytes of a request, and of its head, that are waited for here. A longer one makes the connection aiohttp's for good,
and so does one that is not plain.
"""
HOT = b"GET /v1/states/", b"POST /v1/states/"
END = b"\r\n\r\n"


class Listener(RequestHandler):
    """Requests are answered in their order: while aiohttp has one, those after it are kept here."""

    __slots__ = ("_handed", "_held_back", "_hot", "_meter", "_theirs")

    def __init__(self, server: Server, hot: Hot, *, loop: asyncio.AbstractEventLoop, **told: Any) -> None:
        super().__init__(server, loop=loop, **told)
        self._hot = hot
        self._handed = False
        """Whether aiohttp has a request."""
        self._theirs = False
        """Whether the connection is aiohttp's for good."""
        self._held_back = b""
        """What came and was not looked at yet: part of a request, or what came after one that aiohttp has."""
        self._meter: Meter

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._meter = self._hot.address_meter(peer[0] if peer else "")

    @override
    def data_received(self, data: bytes) -> None:
        if self._theirs:
            super().data_received(data)
            return
        if self._held_back:
            data = self._held_back + data
        self._held_back = data if self._handed else self._answered(data)
        if len(self._held_back) > MOST and not self._theirs:
            self._pause_transport_reading()

    @override
    async def finish_response(
        self, request: BaseRequest, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        finished = await super().finish_response(request, resp, start_time)
        if resp.keep_alive and not self._theirs:
            self._loop.call_soon(self._go_on)
        return finished

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._handed:
            self._go_on()

    @override
    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """What cannot be read as HTTP is told as every other problem is, without aiohttp's words and name."""
        log.debug("not HTTP", exc_info=exc)
        response = told(Problem("bad_request", "The request is no HTTP/1.1 that is understood")).response()
        response.headers["Server"] = "stateloop"
        response.force_close()
        return response

    def _go_on(self) -> None:
        """Look at what came meanwhile."""
        self._handed = False
        if self.transport is None:
            return
        self._resume_transport_reading()
        if self._held_back and not self._theirs:
            data, self._held_back = self._held_back, b""
            self.data_received(data)

    def _answered(self, data: bytes) -> bytes:
        """Answer the requests in the data; gives what is left, which waits for more data or for an answer."""
        hot = self._hot
        while data and not (self._close or self._force_close):
            if self._paused:  # the client does not read its answers
                self._pause_transport_reading()
                return data
            end = data.find(END)
            if end < 0 or end > MOST_HEAD:
                return data if end < 0 and len(data) < MOST_HEAD and _may_be_hot(data) else self._all_theirs(data)
            line = LINE.match(data)
            asker = hot.asker(data[line.end() - 2 if line else data.find(b"\r\n") : end + 4])
            if asker is None:
                return self._all_theirs(data)
            whole = end + 4 + asker.head.length
            if whole > len(data):
                return data if whole < MOST else self._all_theirs(data)
            meter = asker.meter or self._meter
            answer = hot.answer(line, asker, data[end + 4 : whole], meter) if line else None
            if answer is None:
                self._handed = True
                super().data_received(data[:whole])
                return data[whole:]
            self.transport.write(answer)  # type: ignore[union-attr]  # there is one while data comes
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
            data = data[whole:]
        return b""

    def _all_theirs(self, data: bytes) -> bytes:
        self._theirs = True
        super().data_received(data)
        return b""


def _may_be_hot(data: bytes) -> bool:
    """Whether the beginning of a request may be that of one that is answered here."""
    return any(data.startswith(one[: len(data)]) for one in HOT)
