"""Sends a call to an API with aiohttp, behind a small interface."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, cast
from urllib.parse import quote

from aiohttp import ClientConnectorError, ClientError, DefaultResolver
from yarl import URL

from contracts import PermanentCallError
from services.enrichment.calls.headers import secrets
from services.enrichment.calls.resolver import CheckedResolver
from services.enrichment.calls.response import ForbiddenAddressError, error_of
from services.enrichment.calls.session import open_session

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    from aiohttp.abc import AbstractResolver

    from services.enrichment.calls.addresses import Network
    from services.enrichment.calls.response import Response
    from services.enrichment.calls.session import CheckedResponse

    OpenSpan = Callable[[str, str], AbstractContextManager["CallSpan"]]
    """Opens the trace of a call, by its method and host."""

HEADERS = {"Accept": "application/json", "User-Agent": "stateloop"}
MOVED = frozenset({301, 302, 303, 307, 308})
MOST_ORIGINS = 16
"""The maximum number of redirect targets whose connections are reused."""
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
        self._build = partial(URL.build, scheme=base.scheme, authority=self._origin.raw_authority, encoded=True)
        self._bounds = bounds
        self._clock = clock
        self._span = span
        own = dict(bounds.headers or {})
        self._headers = _merged(own)
        self._secrets = secrets(own)
        self._resolver = CheckedResolver(resolver or DefaultResolver(), bounds.allowed)
        self._session = open_session(bounds.connections, self._resolver, bounds.allowed, trusted)
        self._targets: set[URL] = set()
        """The targets of redirects whose connections are reused."""

    async def get(self, target: str, within: float) -> Response:
        """See `Transport.get`."""
        url = self._url(target if target.isascii() else quote(target, safe=ASCII))
        if not self._bounds.redirects:
            return await self._hop(url, self._headers, within)
        return await self._followed(url, within)

    async def post(self, post: Post, within: float) -> Response:
        """See `Transport.post`. A connection that was closed while it was idle may have carried it: it is repeated."""
        return await self._hop(self._url(post.target), {**self._headers, **post.headers}, within, post.content)

    def _url(self, target: str) -> URL:
        path, _, query = target.partition("?")
        return self._build(path=self._base_path + path, query_string=query)

    async def _followed(self, url: URL, within: float) -> Response:
        """The response at the end of the declared number of redirects. Only the API itself receives secret headers."""
        until, hops = self._clock() + within, 0
        response = await self._hop(url, self._headers, within)
        while response.status in MOVED and response.location is not None:
            if hops == self._bounds.redirects:
                raise PermanentCallError(f"more than {hops} redirects")
            url, hops = _moved(url, response.location), hops + 1
            headers = self._headers if url.origin() == self._origin else HEADERS
            try:
                response = await self._hop(url, headers, until - self._clock())
            except ForbiddenAddressError as refused:
                raise PermanentCallError(f"redirected to where no call may go: {refused.reason}") from refused
            if not self._is_reused(url.origin()):
                response.drop()
        return response

    async def _hop(self, url: URL, headers: Mapping[str, str], within: float, content: bytes | None = None) -> Response:
        """The response to a GET, or to a POST of the content, without redirects."""
        method = "GET" if content is None else "POST"
        if self._span is None:
            return await self._sent(method, url, headers, within, content)
        with self._span(method, url.host or "") as span:
            response = await self._sent(method, url, {**headers, **span.headers}, within, content)
            span.end(response.status)
            return response

    async def _sent(
        self, method: str, url: URL, headers: Mapping[str, str], within: float, content: bytes | None
    ) -> Response:
        request = self._session.request(method, url, headers=headers, data=content, allow_redirects=False)
        try:
            async with asyncio.timeout(within), request as received:
                response = await cast("CheckedResponse", received).receive(self._bounds.largest)
        except ClientConnectorError as error:
            raise error_of(error.os_error, within) from error.os_error
        except (ClientError, OSError) as error:
            raise error_of(error, within) from error
        if self._secrets and any(secret in response.body for secret in self._secrets):
            raise PermanentCallError("the response repeats a secret header of ours, and must not be written anywhere")
        return response

    def _is_reused(self, origin: URL) -> bool:
        """Return whether connections to an origin are reused: the API itself, and the first targets of redirects."""
        if origin != self._origin and len(self._targets) < MOST_ORIGINS:
            self._targets.add(origin)
        return origin == self._origin or origin in self._targets

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
        await self._session.close()
        await self._resolver.close()


def _merged(own: Mapping[str, str]) -> dict[str, str]:
    """The given headers, and the default ones that they do not replace."""
    named = {name.lower() for name in own}
    return {name: value for name, value in HEADERS.items() if name.lower() not in named} | dict(own)


def _moved(url: URL, location: str) -> URL:
    """The target of a redirect. Raises PermanentCallError for another scheme, or from https to http."""
    try:
        moved = url.join(URL(location))
        host = (moved.host or "").encode("idna")  # as the resolver does: a name may have an empty or too long label
    except ValueError as error:
        raise PermanentCallError("redirected to an invalid URL") from error
    if moved.scheme not in ("https", url.scheme) or not host or moved.user or moved.password:
        raise PermanentCallError("redirected to another scheme, or with a user: the redirect is not followed")
    return moved
