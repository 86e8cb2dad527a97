"""Forwards requests to other instances: one hop, over connections that are kept open."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from services.query.http.responses import HttpResponse, header_lines
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError
from services.query.push.peer_connections import FORWARDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from services.query.cluster import Member
    from services.query.http.responses import Headers

log = logging.getLogger(__name__)

__all__ = ["FORWARDED", "PASSING_HEADER", "ForwardedRequest", "HttpPeerClient", "PeerClient"]

PASSING_HEADER = "Stateloop-Passing"
"""Header of a response to another instance: the indices of its problems that may be gone a moment later."""
ANSWER_S = 1.0
"""How long one instance may take, in addition to the `wait` of the request."""
CONNECT_S = 0.5
CONNECTIONS = 100
"""Connections to each instance for requests that it answers at once. One that waits has a connection of its own."""
HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
"""Headers of a response that are of the connection, and not passed on."""
NOT_AN_ANSWER = {HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.UNAUTHORIZED}


class ForwardedRequest(NamedTuple):
    """A request to another instance. `target` is the path with its query, as the client sent it."""

    target: str
    method: str = "GET"
    headers: Headers = ()
    body: bytes = b""


class PeerClient(Protocol):
    """Sends requests to other instances. These answer from their own stores, or respond with 421."""

    async def forward(self, members: Sequence[Member], request: ForwardedRequest) -> HttpResponse:
        """The first response that is no 421. Raises ProblemError (503) if there is none."""
        ...


class HttpPeerClient:
    """Implements PeerClient. `token` is that of the instances: the client's own is not forwarded."""

    def __init__(self, token: SecretStr | None, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._headers = {FORWARDED: "1"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token.get_secret_value()}"

    async def __aenter__(self) -> Self:
        self._reads, self._waits = _pool(CONNECTIONS), _pool(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(self._reads.close(), self._waits.close())

    async def forward(self, members: Sequence[Member], request: ForwardedRequest) -> HttpResponse:
        """See PeerClient. The 503 of an instance that catches up counts only when no other instance answers.

        The `wait` of the request is that of all together.
        """
        unavailable: HttpResponse | None = None
        clock = asyncio.get_running_loop().time
        end = clock() + _wait_of(URL(request.target, encoded=True))
        for member in members:
            response = await self._send(member, _waiting(request, end - clock()))
            if response is not None and response.status != HTTPStatus.SERVICE_UNAVAILABLE:
                return response
            unavailable = unavailable or response
        if unavailable is not None:
            return unavailable
        names = ", ".join(member.instance for member in members) or "any instance"
        raise ProblemError(Problem("unreachable", f"No answer from {names}", retry_after=RETRY_AFTER_S))

    async def _send(self, member: Member, request: ForwardedRequest) -> HttpResponse | None:
        url = URL(member.url + request.target, encoded=True)
        wait_s = _wait_of(url)
        timeout = ClientTimeout(total=self._answer_s + wait_s, sock_connect=CONNECT_S)
        try:
            async with (self._waits if wait_s else self._reads).request(
                request.method,
                url,
                headers=dict(request.headers) | self._headers,
                data=request.body or None,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                if response.status == HTTPStatus.UNAUTHORIZED:
                    log.warning("an instance rejects the peer token: set the same STATELOOP_PEER_TOKEN on both")
                if response.status in NOT_AN_ANSWER:
                    return None
                return received(response.status, response.headers, await response.read())
        except (ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            facts = {"instance": member.instance, "detail": f"{type(error).__name__}: {error}"}
            log.warning("an instance did not answer", extra={"facts": facts})
            return None


def _pool(connections: int) -> ClientSession:
    """A session with at most so many connections to each instance; 0 is no limit."""
    return ClientSession(
        connector=TCPConnector(limit_per_host=connections, limit=0),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept-Encoding"),
    )


def received(status: int, headers: Mapping[str, str], body: bytes) -> HttpResponse:
    """The response of another instance, for this instance's client."""
    passing = tuple(int(one) for one in headers.get(PASSING_HEADER, "").split(",") if one.isdecimal())
    own = {*HOP_HEADERS, PASSING_HEADER.lower()}
    kept = (header for header in headers.items() if header[0].lower() not in own)
    return HttpResponse(status, header_lines(*kept), body, passing)


def _waiting(request: ForwardedRequest, most_s: float) -> ForwardedRequest:
    """The request, with a `wait` of at most so many seconds."""
    url = URL(request.target, encoded=True)
    if _wait_of(url) <= max(0.0, most_s):
        return request
    return request._replace(target=url.update_query(wait=f"{max(0.0, most_s):.3f}").raw_path_qs)


def _wait_of(url: URL) -> float:
    """The `wait` of the request, in seconds."""
    try:
        return max(0.0, float(url.query.get("wait", "0")))
    except ValueError:
        return 0.0
