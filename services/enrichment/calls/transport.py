"""How a call gets to an API and back: a small interface, and aiohttp behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import aiohttp
from yarl import URL

from contracts import PermanentFailure, RetryableFailure

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

HEADERS = {"Accept": "application/json", "User-Agent": "stateloop"}


@dataclass(frozen=True, slots=True)
class Response:
    """What an API answered."""

    status: int
    body: bytes
    retry_after: str | None = None


class Transport(Protocol):
    """Calls one API. Redirects are not followed, and a body over the limit is not read."""

    async def get(self, target: str, within: timedelta) -> Response:
        """GET a path with its query, percent-encoded, beneath the API's base URL.

        Raises RetryableFailure when there is no whole answer in time, PermanentFailure when it is too large.
        """
        ...


class AiohttpTransport:
    """One API by aiohttp: connections are kept and used again. An async context manager."""

    def __init__(self, base_url: str, *, connections: int, body_limit: int) -> None:
        self._base_url = base_url
        self._body_limit = body_limit
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=HEADERS,
        )

    async def get(self, target: str, within: timedelta) -> Response:
        """See `Transport.get`."""
        url = URL(self._base_url + target, encoded=True)
        seconds = within.total_seconds()
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._session.get(url, allow_redirects=False, timeout=limit) as response:
                body = await self._body(response)
                return Response(response.status, body, response.headers.get("Retry-After"))
        except TimeoutError as error:
            raise RetryableFailure(f"no answer within {seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryableFailure(f"the connection failed ({type(error).__name__})") from error

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        chunks, size = [], 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > self._body_limit:
                response.close()
                raise PermanentFailure(f"the response is larger than {self._body_limit} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()
