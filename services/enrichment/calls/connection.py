"""One HTTP/1.1 connection to an API: it sends a request, receives its response, and then carries the next request.

A response has no number of the request that it answers. So a connection closes when it receives a byte that belongs to
no request: while it is idle, after a response, or not read yet before the next request.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, cast

import httptools

from contracts import PermanentCallError
from contracts.errors import CallError
from services.enrichment.calls.response import BadResponseError, DisconnectedError, Response, check_size, decoded

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

LONGEST_HEADER, MOST_HEADERS = 8190, 128
"""In bytes, and in number: a response beyond them is a failed connection."""
LONGEST_HEAD = 64 * 1024
"""In bytes: a response whose headers, or trailers, are longer is a failed connection."""
FINAL = 200
"""Lower statuses are interim responses."""
CLOSING_NEWLINES = 4
"""The bytes of the newlines that close headers or a chunked body."""


class Connection(asyncio.Protocol):
    """Carries one call at a time. After a response it calls `keep` with itself, if it is reusable."""

    def __init__(self, largest: int, keep: Callable[[Connection], None]) -> None:
        self._largest = largest
        self._keep = keep
        self._response: asyncio.Future[Response] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._requests = self._received = self._since_body = 0
        self._is_whole = self._is_persistent = False
        self._begin()

    def is_reusable(self) -> bool:
        """Return whether it is open, and its socket has no bytes or end that the event loop has not read yet."""
        return not (self._transport.is_closing() or self._unread.poll(0))

    def request(self, request: bytes, until: float) -> asyncio.Future[Response]:
        """Send a request. Its response must be complete by this time of the event loop.

        The future receives it, or TimeoutError, DisconnectedError, BadResponseError or PermanentCallError.
        """
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._requests += 1
        self._response = loop.create_future()
        self._deadline = loop.call_at(until, self._fail, TimeoutError())
        self._received = self._since_body = 0  # the latter counts bytes outside the body
        self._begin()
        self._transport.write(request)
        return self._response

    def close(self) -> None:
        """Close it immediately. A request in flight fails."""
        self._fail(DisconnectedError(stale=self._requests > 1 and not self._received))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._unread = select.poll()
        self._unread.register(cast("socket", transport.get_extra_info("socket")).fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`. Bytes without a request in flight close it: they would answer the next one."""
        if self._response is None:
            self.close()
            return
        self._received += len(data)
        self._since_body += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(BadResponseError(str(error)))
        if self._since_body > LONGEST_HEAD:
            self._fail(BadResponseError(f"the headers or trailers are longer than {LONGEST_HEAD} bytes"))
        if self._is_whole and self._response is not None:
            self._succeed(keep=self._is_persistent and not self._is_followed(data))

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`. A response without a length ends when the connection closes."""
        if self._response is None:
            return
        if exc is None and self._status >= FINAL and not self._is_framed:
            self._succeed(keep=False)
        else:
            self.close()

    def on_message_begin(self) -> None:
        """See `httptools`. Two responses to one request are an error: either may be the wrong one."""
        if self._is_whole:
            self._fail(BadResponseError("more than one response came to one request"))
        else:
            self._begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """See `httptools`. Trailers count, but are not stored."""
        self._lines += 1
        if self._lines > MOST_HEADERS or len(name) + len(value) > LONGEST_HEADER:
            self._fail(BadResponseError("the headers are too many, or too long"))
        if not self._status:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """See `httptools`."""
        if not self._is_whole:
            self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """See `httptools`."""
        self._size += len(body)
        self._since_body = 0
        try:
            check_size(self._size, self._largest)
        except PermanentCallError as failure:
            self._fail(failure)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """See `httptools`. More bytes may follow in the present chunk, so the response waits for its end."""
        if self._status >= FINAL:
            self._is_whole = True
            self._is_persistent = self._parser.should_keep_alive()

    @property
    def _is_framed(self) -> bool:
        return b"content-length" in self._headers or b"transfer-encoding" in self._headers

    def _is_followed(self, data: bytes) -> bool:
        """Return whether newlines, which the parser skips, follow the response. In doubt, True."""
        has_length = self._body and b"transfer-encoding" not in self._headers
        return _trailing_newlines(data) != (_trailing_newlines(self._body[-1]) if has_length else CLOSING_NEWLINES)

    def _begin(self) -> None:
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = self._lines = 0
        self._is_whole = self._is_persistent = False

    def _text(self, header: bytes) -> str | None:
        value = self._headers.get(header)
        return None if value is None else value.decode("latin-1")

    def _succeed(self, *, keep: bool) -> None:
        """Hand the response over, unless the call has ended already."""
        try:
            response = self._made()
        except (CallError, BadResponseError) as error:
            self._fail(error)
            return
        if (waiting := self._taken()) is None or not keep:
            self._transport.abort()
        else:
            self._keep(self)
        if waiting is not None:
            waiting.set_result(response)

    def _made(self) -> Response:
        body, encoding = b"".join(self._body), self._headers.get(b"content-encoding", b"identity").lower()
        if body and encoding != b"identity":
            body = decoded(body, encoding, self._largest)
        return Response(self._status, body, self._text(b"retry-after"), self._text(b"location"), self.close)

    def _fail(self, error: Exception) -> None:
        if (waiting := self._taken()) is not None:
            waiting.set_exception(error)
        self._transport.abort()

    def _taken(self) -> asyncio.Future[Response] | None:
        """Remove and return the future of the call in flight, if it still waits."""
        waiting, self._response = self._response, None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        return None if waiting is None or waiting.done() else waiting


def _trailing_newlines(data: bytes) -> int:
    """Return how many bytes of trailing newlines these end with."""
    return len(data) - len(data.rstrip(b"\r\n"))
