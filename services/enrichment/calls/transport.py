"""Sends a call to an API over HTTP/1.1, behind a small interface."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self
from urllib.parse import quote

from aiohttp import DefaultResolver
from yarl import URL

from contracts import PermanentCallError
from services.enrichment.calls.headers import secrets
from services.enrichment.calls.pool import ConnectionPool
from services.enrichment.calls.resolver import CheckedResolver
from services.enrichment.calls.response import ForbiddenAddressError, error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    from aiohttp.abc import AbstractResolver

    from services.enrichment.calls.addresses import Network
    from services.enrichment.calls.response import Response

    OpenSpan = Callable[[str, str], AbstractContextManager["CallSpan"]]
    """Opens the trace of a call, by its method and host."""

HEADERS = {"Accept": "application/json", "User-Agent": "stateloop"}
MOVED = frozenset({301, 302, 303, 307, 308})
MOST_ORIGINS = 16
"""The maximum number of redirect targets with open connections."""
ASCII = "".join(map(chr, range(128)))


class Post(NamedTuple):
    """A POST beneath the API's base URL. The headers are ASCII."""

    target: str
    content: bytes
    headers: Mapping[str, str]


class Transport(Protocol):
    """Calls one API. It does not read a body over the limit."""

    async def get(self, target: str, within: float) -> Response:
        """GET a path with its query, percent-encoded, beneath the API's base URL, within seconds.

        Raises RetryableCallError when no whole response comes in time, PermanentCallError when it may not be read.
        """
        ...

    async def post(self, post: Post, within: float) -> Response:
        """POST, without following redirects. Raises as `get` does."""
        ...


class CallSpan(Protocol):
    """The trace of one call."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that carry its context to the API."""
        ...

    def end(self, status: int) -> None:
        """Record the status of the response."""
        ...


@dataclass(frozen=True)
class Bounds:
    """The limits of a transport. `headers` are secret: only the API itself receives them."""

    connections: int
    largest: int
    redirects: int = 0
    allowed: Collection[Network] = ()
    headers: Mapping[str, str] | None = None


class HttpTransport:
    """One API over persistent connections. An async context manager; `span` traces a call by its method and host.

    It opens no socket to a forbidden address, whatever name, redirect or literal led to it. A connection with stray
    bytes carries no further request.
    """

    def __init__(  # noqa: PLR0913  # each but the first two for tests or traces
        self,
        base_url: str,
        bounds: Bounds,
        *,
        clock: Callable[[], float],
        resolver: AbstractResolver | None = None,
        trusted: ssl.SSLContext | None = None,
        span: OpenSpan | None = None,
    ) -> None:
        base = URL(base_url)
        self._origin = base.origin()
        self._base_path = base.raw_path.rstrip("/")
        self._build = partial(URL.build, scheme=base.scheme, authority=base.raw_authority, encoded=True)
        self._bounds = bounds
        self._clock = clock
        self._span = span
        own = dict(bounds.headers or {})
        self._secrets = secrets(own)
        self._resolver = CheckedResolver(resolver or DefaultResolver(), bounds.allowed)
        self._new_pool = partial(
            ConnectionPool,
            connections=bounds.connections,
            largest=bounds.largest,
            resolver=self._resolver,
            allowed=bounds.allowed,
            trusted=trusted or _verifying(),
        )
        self._pool = self._new_pool(self._origin)
        self._redirect_pools: dict[URL, ConnectionPool] = {}
        self._head = _head(self._origin, _merged(own))

    async def get(self, target: str, within: float) -> Response:
        """See `Transport.get`."""
        path = self._base_path + (target if target.isascii() else quote(target, safe=ASCII))
        if not self._bounds.redirects:
            return await self._hop(self._origin, path, within)
        return await self._followed(path, within)

    async def post(self, post: Post, within: float) -> Response:
        """See `Transport.post`. A connection that was closed while it was idle may have carried it: it is repeated."""
        return await self._hop(self._origin, (self._base_path + post.target) or "/", within, post)

    async def _followed(self, path: str, within: float) -> Response:
        """The response at the end of the declared number of redirects."""
        until, hops = self._clock() + within, 0
        bare, _, query = path.partition("?")
        url = self._build(path=bare, query_string=query)
        response = await self._hop(self._origin, path, within)
        while response.status in MOVED and response.location is not None:
            if hops == self._bounds.redirects:
                raise PermanentCallError(f"more than {hops} redirects")
            url, hops = _moved(url, response.location), hops + 1
            try:
                response = await self._hop(url.origin(), url.raw_path_qs, until - self._clock())
            except ForbiddenAddressError as refused:
                raise PermanentCallError(f"redirected to where no call may go: {refused.reason}") from refused
        return response

    async def _hop(self, origin: URL, path: str, within: float, post: Post | None = None) -> Response:
        if self._span is None:
            return await self._sent(origin, path, within, None, post)
        with self._span("POST" if post else "GET", origin.host or "") as span:
            response = await self._sent(origin, path, within, span.headers, post)
            span.end(response.status)
            return response

    async def _sent(
        self, origin: URL, path: str, within: float, traced: Mapping[str, str] | None, post: Post | None
    ) -> Response:
        """The response to one request, without redirects. Only the API's own origin receives the secret headers."""
        if origin == self._origin:
            pool, head = self._pool, self._head
        else:
            pool, head = self._pool_of(origin), _head(origin, HEADERS)
        context = _lines(traced) if traced else b""
        method, tail = (b"GET ", b"\r\n") if post is None else (b"POST ", _with_content(post))
        request = b"".join((method, path.encode("ascii"), head, context, tail))
        until = asyncio.get_running_loop().time() + max(within, 0)
        try:
            response = await pool.request(request, until)
        except OSError as error:
            raise error_of(error, within) from error
        if self._secrets and any(secret in response.body for secret in self._secrets):
            raise PermanentCallError("the response repeats a secret header of ours, and must not be written anywhere")
        return response

    def _pool_of(self, origin: URL) -> ConnectionPool:
        """The pool of an origin that a redirect leads to."""
        if origin not in self._redirect_pools:
            if len(self._redirect_pools) == MOST_ORIGINS:
                self._redirect_pools.pop(next(iter(self._redirect_pools))).close()
            self._redirect_pools[origin] = self._new_pool(origin)
        return self._redirect_pools[origin]

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
        """Close its connections."""
        for pool in (self._pool, *self._redirect_pools.values()):
            pool.close()
        await self._resolver.close()


def _head(origin: URL, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request after its path, without the empty line."""
    return b" HTTP/1.1\r\n" + _lines({"Host": origin.host_port_subcomponent or "", **headers})


def _with_content(post: Post) -> bytes:
    """The end of a POST: its own headers, and its content."""
    return _lines({**post.headers, "Content-Length": str(len(post.content))}) + b"\r\n" + post.content


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("ascii")


def _merged(own: Mapping[str, str]) -> dict[str, str]:
    """The given headers, and the default ones that they do not replace."""
    named = {name.lower() for name in own}
    return {name: value for name, value in HEADERS.items() if name.lower() not in named} | dict(own)


@cache
def _verifying() -> ssl.SSLContext:
    """Trusts the system's certificate authorities."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _moved(url: URL, location: str) -> URL:
    """The target of a redirect. Raises PermanentCallError for another scheme, or from https to http."""
    try:
        moved = url.join(URL(location))
    except ValueError as error:
        raise PermanentCallError("redirected to an invalid URL") from error
    if moved.scheme not in ("https", url.scheme) or moved.host is None or moved.user or moved.password:
        raise PermanentCallError("redirected to another scheme, or with a user: the redirect is not followed")
    return moved
