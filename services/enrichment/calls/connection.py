"""One connection to an API, in HTTP/1.1: a request out, its response in, and then the next one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from contracts import PermanentFailure
from services.enrichment.calls.transport import LONGEST_HEADER, MOST_HEADERS, Response

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_HEAD = 64 * 1024
"""In bytes: a response whose headers, or trailers, are longer is a failed connection."""
FINAL = 200
"""Lower statuses announce a response, and are none."""


class DisconnectedError(OSError):
    """The connection ended before the response did. `stale`: it was kept, and ended before any of the response."""

    def __init__(self, *, stale: bool) -> None:
        super().__init__("the connection ended before the response did")
        self.stale = stale


class BadResponseError(OSError):
    """What came is no response that can be read."""


class Connection(asyncio.Protocol):
    """Carries one call at a time. When a response is whole, and more may follow, it calls `kept` with itself."""

    def __init__(self, largest: int, kept: Callable[[Connection], None]) -> None:
        self._largest = largest
        self._kept = kept
        self._answer: asyncio.Future[Response] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._calls = self._received = self._besides = 0
        self._begin()

    @property
    def is_open(self) -> bool:
        """Whether it can carry a call."""
        return not self._transport.is_closing()

    def ask(self, request: bytes, until: float) -> asyncio.Future[Response]:
        """Send a request; there is so long, by the loop's time, for its response.

        The future has that, or TimeoutError, DisconnectedError, BadResponseError or PermanentFailure.
        """
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._calls += 1
        self._answer = loop.create_future()
        self._late = loop.call_at(until, self._fail, TimeoutError())
        self._received = self._besides = 0  # the latter since the last of a body came
        self._begin()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """End it at once."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`. What comes when nothing was asked would be taken for the next answer."""
        if self._answer is None:
            self.close()
            return
        self._received += len(data)
        self._besides += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(BadResponseError(str(error)))
        if self._besides > LONGEST_HEAD:
            self._fail(BadResponseError(f"the headers or trailers are longer than {LONGEST_HEAD} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`. A response that does not say how long it is ends with the connection."""
        if exc is None and self._status >= FINAL and not self._is_framed:
            self._succeed()
        self._fail(DisconnectedError(stale=self._calls > 1 and not self._received))

    def on_message_begin(self) -> None:
        """See `httptools`."""
        if self._answer is None:
            self.close()
        self._begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """See `httptools`."""
        self._lines += 1
        if self._lines > MOST_HEADERS or len(name) + len(value) > LONGEST_HEADER:
            self._fail(BadResponseError("the headers are too many, or too long"))
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """See `httptools`."""
        self._status = self._parser.get_status_code()
        if self._headers.get(b"content-encoding", b"identity").lower() != b"identity":
            self._fail(PermanentFailure("the response is compressed unasked: set STATELOOP_HTTP=aiohttp"))

    def on_body(self, body: bytes) -> None:
        """See `httptools`."""
        self._size += len(body)
        self._besides = 0
        if self._size > self._largest:
            self._fail(PermanentFailure(f"the response is larger than {self._largest} bytes"))
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """See `httptools`."""
        if self._status < FINAL or self._answer is None:
            return
        if self._parser.should_keep_alive():
            self._succeed()
            self._kept(self)
        else:
            self._succeed()
            self._transport.close()

    @property
    def _is_framed(self) -> bool:
        return b"content-length" in self._headers or b"transfer-encoding" in self._headers

    def _begin(self) -> None:
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = self._lines = 0

    def _text(self, header: bytes) -> str | None:
        value = self._headers.get(header)
        return None if value is None else value.decode("latin-1")

    def _succeed(self) -> None:
        if (answer := self._asked()) is not None:
            body = b"".join(self._body)
            answer.set_result(Response(self._status, body, self._text(b"retry-after"), self._text(b"location")))

    def _fail(self, error: Exception) -> None:
        if (answer := self._asked()) is not None:
            answer.set_exception(error)
        self.close()

    def _asked(self) -> asyncio.Future[Response] | None:
        """Where the answer is waited for, if it is; from now on it is not any more."""
        answer, self._answer = self._answer, None
        if self._late is not None:
            self._late.cancel()
        return None if answer is None or answer.done() else answer
