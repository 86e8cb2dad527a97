"""HTTP requests to one instance over pooled connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
import orjson
from yarl import URL

from services.client.errors import InvalidResponseError
from services.client.retrier import AttemptFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

CONNECT_S = 1.0
HEARTBEAT_S = 10.0
PROTOCOL = "stateloop.v1"
MAX_ERROR_LENGTH = 100
"""The number of characters of an error that the message contains."""


class InstanceResponse(NamedTuple):
    """The response of an instance. `body` is its JSON, or None."""

    url: str
    status: int
    body: Any
    after_s: float | None
    """Retry-After, in seconds."""


class UnreachableError(AttemptFailedError):
    """The instance did not answer."""


class ClientTransport:
    """Sends requests to instances. `async with`. Streams have their own connections, so reads never wait for them."""

    def __init__(self, token: str | None, connections: int) -> None:
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connections = connections
        self._reads: aiohttp.ClientSession | None = None
        self._stream: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._reads, self._stream = self._pool(self._connections), self._pool(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._reads, self._stream):
            if session:
                await session.close()

    def _pool(self, connections: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections), headers=self._headers)

    async def send(
        self, url: str, target: str, within_s: float, body: Mapping[str, Any] | None = None
    ) -> InstanceResponse:
        """Return the response to a GET, or to a POST of this body. Raises UnreachableError."""
        timeout = aiohttp.ClientTimeout(total=within_s, connect=CONNECT_S)
        method, data = ("GET", None) if body is None else ("POST", orjson.dumps(body))
        headers = {"Content-Type": "application/json"} if data else {}
        try:
            async with _open(self._reads).request(
                method, full(url, target), data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                return InstanceResponse(
                    url, answer.status, _json(url, answer.status, await answer.read()), after_s(answer)
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(url, error) from error

    def stream(self, url: str, target: str, headers: Mapping[str, str], silence_s: float) -> Stream:
        """Open a GET with an endless body, which ends after this many seconds of silence."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=silence_s)
        return _open(self._stream).get(full(url, target), headers=headers, timeout=timeout, allow_redirects=False)

    def socket(self, url: str, target: str) -> Socket:
        """Open a WebSocket. Pings detect a dead connection."""
        timeout = aiohttp.ClientWSTimeout(ws_close=CONNECT_S)
        return _open(self._stream).ws_connect(
            full(url, target), protocols=[PROTOCOL], heartbeat=HEARTBEAT_S, timeout=timeout, max_msg_size=0
        )


if TYPE_CHECKING:
    Stream = AbstractAsyncContextManager[aiohttp.ClientResponse]
    Socket = AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]


def _open(session: aiohttp.ClientSession | None) -> aiohttp.ClientSession:
    """Return the session. Raises RuntimeError outside of `async with`."""
    if session is None:
        raise RuntimeError("use the client inside `async with`")
    return session


def full(url: str, target: str) -> URL:
    """Return the URL of a percent-encoded target: it must not be decoded, for the slashes of a key."""
    return URL(url + target, encoded=True)


def after_s(answer: aiohttp.ClientResponse) -> float | None:
    """Return the seconds of Retry-After; None without it. Instances do not send its other form, a date."""
    text = answer.headers.get("Retry-After", "")
    return float(text[:9]) if text.isascii() and text.isdigit() else None


def unreachable(url: str, error: BaseException) -> UnreachableError:
    """Return the error for a failed request."""
    detail = str(error)[:MAX_ERROR_LENGTH] or (
        "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
    )
    return UnreachableError(f"{url}: {detail}")


def _json(url: str, status: int, body: bytes) -> Any:
    """Return the JSON of a body; None for an error page of a proxy."""
    try:
        return orjson.loads(body)
    except ValueError as error:
        if status == 200:  # noqa: PLR2004
            raise InvalidResponseError(url, f"{body[:20]!r} is no JSON") from error
        return None
