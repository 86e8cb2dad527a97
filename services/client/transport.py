"""HTTP requests to one instance over pooled connections."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
import orjson
from yarl import URL

from services.client.errors import InvalidResponseError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

CONNECT_S = 1.0
SILENCE_S = 20.0
"""The service sends a mark every 5 seconds: a WebSocket that is silent for this long is dead."""
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


class NoSocketError(Exception):
    """The response to a request for a WebSocket is an ordinary one."""

    def __init__(self, response: InstanceResponse) -> None:
        super().__init__(f"{response.url} answered {response.status}")
        self.response = response


class ClientTransport:
    """Sends requests to instances. `async with`.

    Watches, and requests that an instance lets wait, have their own connections, so reads never wait for them.
    """

    def __init__(self, token: str | None, connections: int) -> None:
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connections = connections
        self._reads: aiohttp.ClientSession | None = None
        self._waits: aiohttp.ClientSession | None = None
        self._sockets: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._reads, self._waits = self._pool(self._connections), self._pool(0)
        self._sockets = self._pool(0, _require_socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._reads, self._waits, self._sockets):
            if session:
                await session.close()

    def _pool(self, connections: int, check: Check | None = None) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections)
        return aiohttp.ClientSession(connector=connector, headers=self._headers, raise_for_status=check or False)

    async def send(
        self, url: str, target: str, within_s: float, body: Mapping[str, Any] | None = None, *, waits: bool = False
    ) -> InstanceResponse:
        """Return the response to a GET, or to a POST of this body; with `waits` it may come late.

        Raises UnreachableError.
        """
        timeout = aiohttp.ClientTimeout(total=within_s, connect=CONNECT_S)
        method, data = ("GET", None) if body is None else ("POST", orjson.dumps(body))
        headers = {"Content-Type": "application/json"} if data else {}
        try:
            async with _open(self._waits if waits else self._reads).request(
                method, full(url, target), data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                return await _response(url, answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(url, error) from error

    def socket(self, url: str, target: str) -> Socket:
        """Open a WebSocket, which raises TimeoutError after a silence. Raises NoSocketError."""
        timeout = aiohttp.ClientWSTimeout(ws_receive=SILENCE_S, ws_close=CONNECT_S)
        return _open(self._sockets).ws_connect(full(url, target), protocols=[PROTOCOL], timeout=timeout, max_msg_size=0)


if TYPE_CHECKING:
    Check = Callable[[aiohttp.ClientResponse], Awaitable[None]]
    Socket = AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]


def _open(session: aiohttp.ClientSession | None) -> aiohttp.ClientSession:
    """Return the session. Raises RuntimeError outside of `async with`."""
    if session is None:
        raise RuntimeError("use the client inside `async with`")
    return session


def full(url: str, target: str) -> URL:
    """Return the URL of a percent-encoded target: it must not be decoded, for the slashes of a key."""
    return URL(url + target, encoded=True)


async def _response(url: str, answer: aiohttp.ClientResponse) -> InstanceResponse:
    """Return the whole response. Instances do not send the other form of Retry-After, a date."""
    text = answer.headers.get("Retry-After", "")
    after_s = float(text[:9]) if text.isascii() and text.isdigit() else None
    return InstanceResponse(url, answer.status, _json(url, answer.status, await answer.read()), after_s)


async def _require_socket(answer: aiohttp.ClientResponse) -> None:
    """Raise NoSocketError with the response of an instance that opens no WebSocket."""
    if answer.status != HTTPStatus.SWITCHING_PROTOCOLS:
        raise NoSocketError(await _response(str(answer.url), answer))


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
        if status == HTTPStatus.OK:
            raise InvalidResponseError(url, f"{body[:20]!r} is no JSON") from error
        return None
