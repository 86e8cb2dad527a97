"""How a call gets to an API and back: a small interface, and aiohttp behind it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import aiohttp
from yarl import URL

from contracts import PermanentFailure, RetryableFailure
from services.enrichment.calls.addresses import AddressRefusedError, check
from services.enrichment.calls.headers import secrets
from services.enrichment.calls.resolver import CheckedResolver

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
    from types import TracebackType

    from aiohttp.abc import AbstractResolver

    from services.enrichment.calls.addresses import Network

HEADERS = {"Accept": "application/json", "User-Agent": "stateloop"}
MOVED = frozenset({301, 302, 303, 307, 308})
LONGEST_LINE, LONGEST_HEADER, MOST_HEADERS = 8190, 8190, 128
"""In bytes, and in number: a response beyond them is a failed connection."""


@dataclass(frozen=True, slots=True)
class Response:
    """What an API answered."""

    status: int
    body: bytes
    retry_after: str | None = None
    location: str | None = None


class Transport(Protocol):
    """Calls one API. A body over the limit is not read."""

    async def get(self, target: str, within: float) -> Response:
        """GET a path with its query, percent-encoded, beneath the API's base URL, within seconds.

        Raises RetryableFailure when there is no whole answer in time, PermanentFailure when it may not be read.
        """
        ...


@dataclass(frozen=True)
class Bounds:
    """What a transport must keep to. `headers` are secret: they go to the API itself only."""

    connections: int
    largest: int
    redirects: int = 0
    allowed: Collection[Network] = ()
    headers: Mapping[str, str] | None = None


class AiohttpTransport:
    """One API by aiohttp: connections are kept and used again. An async context manager.

    No socket is opened to an address that may not be called, whatever name, redirect or literal led to it.
    """

    def __init__(  # noqa: PLR0913  # each but the first two for tests or traces
        self,
        base_url: str,
        bounds: Bounds,
        *,
        clock: Callable[[], float],
        resolver: AbstractResolver | None = None,
        trusted: ssl.SSLContext | None = None,
        traces: Sequence[aiohttp.TraceConfig] = (),
    ) -> None:
        base = URL(base_url)
        self._origin = base.origin()
        self._base_path = base.raw_path.rstrip("/")
        self._build = partial(URL.build, scheme=base.scheme, authority=base.raw_authority, encoded=True)
        self._bounds = bounds
        self._clock = clock
        self._headers = dict(bounds.headers or {})
        self._secrets = secrets(self._headers)
        self._resolver = CheckedResolver(resolver or aiohttp.DefaultResolver(), bounds.allowed)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=bounds.connections,
                resolver=self._resolver,
                socket_factory=partial(checked_socket, allowed=bounds.allowed),
                ssl=trusted or True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=HEADERS,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
            trace_configs=list(traces),
        )

    def get(self, target: str, within: float) -> Coroutine[Any, Any, Response]:
        """See `Transport.get`."""
        path, _, query = target.partition("?")
        url = self._build(path=self._base_path + path, query_string=query)  # cheaper than to parse it whole
        return self._followed(url, within) if self._bounds.redirects else self._hop(url, within, self._headers)

    async def _followed(self, url: URL, within: float) -> Response:
        """What the last of the declared number of redirects leads to."""
        until, hops = self._clock() + within, 0
        response = await self._hop(url, within, self._headers)
        while response.status in MOVED and response.location is not None:
            if hops == self._bounds.redirects:
                raise PermanentFailure(f"more than {hops} redirects")
            url, hops = _moved(url, response.location), hops + 1
            headers = self._headers if url.origin() == self._origin else None
            try:
                response = await self._hop(url, until - self._clock(), headers)
            except RefusedHere as refused:
                raise PermanentFailure(f"redirected to where no call may go: {refused.reason}") from refused
        return response

    async def _hop(self, url: URL, within: float, headers: Mapping[str, str] | None) -> Response:
        try:
            response = await self._session.get(url, allow_redirects=False, timeout=_limit(within), headers=headers)
            try:
                body = await self._body(response)
            except BaseException:
                response.close()
                raise
        except (aiohttp.ClientError, OSError) as error:
            raise unanswered(error, within) from error
        found = response.headers
        return Response(response.status, body, found.get("Retry-After"), found.get("Location"))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole of it, read to its end: with that aiohttp keeps the connection for the next call."""
        content, chunks, size = response.content, [], 0
        while not content.at_eof():
            chunk = await content.readany()
            size += len(chunk)
            if size > self._bounds.largest:
                raise PermanentFailure(f"the response is larger than {self._bounds.largest} bytes")
            chunks.append(chunk)
        body = b"".join(chunks)
        self._check_body(body)
        return body

    def _check_body(self, body: bytes) -> None:
        if self._secrets and any(secret in body for secret in self._secrets):
            raise PermanentFailure("the response repeats a secret header of ours, and must not be written anywhere")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back what it holds."""
        await self._session.close()


class RefusedHere(RetryableFailure):  # no error of its own: the connection failed for this reason
    """The address may not be called. Names change, and so do settings: a later try may be allowed."""


def unanswered(error: Exception, within: float) -> RetryableFailure:
    """Why there is no whole answer, from what a socket or aiohttp raised."""
    if isinstance(error, TimeoutError):
        return RetryableFailure(f"no answer within {within:g} s")
    if isinstance(refused := getattr(error, "os_error", error), AddressRefusedError):
        return RefusedHere(str(refused))
    return RetryableFailure(f"the connection failed ({type(error).__name__})")


@lru_cache
def _limit(within: float) -> aiohttp.ClientTimeout:
    """The same for nearly all calls: a first try has the whole of its time."""
    return aiohttp.ClientTimeout(total=max(within, 0.001))  # 0 would be no limit


def _moved(url: URL, location: str) -> URL:
    """Where a redirect leads. Raises PermanentFailure for another scheme, or from https to http."""
    try:
        moved = url.join(URL(location))
    except ValueError as error:
        raise PermanentFailure("redirected to what is no URL") from error
    if moved.scheme not in ("https", url.scheme) or moved.host is None or moved.user or moved.password:
        raise PermanentFailure("redirected to another scheme, or with a user: that is not followed")
    return moved


def checked_socket(info: aiohttp.AddrInfoType, *, allowed: Collection[Network]) -> socket.socket:
    """A socket for an address that was found: the last place before the connection, which no address gets around."""
    family, kind, protocol, _, address = info
    check(str(address[0]), allowed)
    return socket.socket(family=family, type=kind, proto=protocol)
