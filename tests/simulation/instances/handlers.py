"""The HTTP of an instance without sockets: its routes and fast path, and the requests to other instances."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from aiohttp import web
from typing_extensions import override
from yarl import URL

from services.query.http.assembly import state_api
from services.query.http.fast_path import REQUEST_LINE
from services.query.http.peer_client import FORWARDED, NOT_AN_ANSWER, HttpPeerClient, received
from services.query.http.request_context import METER, PRINCIPAL, RETRIES
from services.query.http.responses import header_lines, problem_response
from services.query.http.retry import RetryBudget
from services.query.lookup.authentication import Authenticator
from services.query.lookup.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.peer_client import ForwardedRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.key_waiters import KeyWaiters
    from tests.simulation.instances.requests import Requests


class Request(NamedTuple):
    """A request to an instance. `target` is its path with the query."""

    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @property
    def wait_s(self) -> float:
        """How long the instance may wait for a version."""
        return float(URL(self.target, encoded=True).query.get("wait", "0"))


class Reply(NamedTuple):
    """The response of an instance."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The value in the body."""
        return orjson.loads(self.body)


class RoutedRequest(dict[Any, Any]):
    """A request, as the routes use that of aiohttp."""

    def __init__(self, request: Request) -> None:
        self.method = request.method
        self.rel_url = URL(request.target, encoded=True)
        self.headers = dict(request.headers)
        self.match_info: Mapping[str, str] = {}
        self._body = request.body

    async def read(self) -> bytes:
        """See `web.Request.read`."""
        return self._body


class Handlers:
    """Answers requests below /v1/states as the server does, those of the fast path at once if they need no other."""

    def __init__(self, dependencies: Dependencies, peers: HttpPeerClient) -> None:
        self._api = state_api(dependencies, Authenticator(None), peers)
        self._clock = dependencies.clock
        self._router = web.UrlDispatcher()
        for routes in self._api.routes:
            self._router.add_routes(routes.routes())

    @property
    def waiters(self) -> KeyWaiters:
        """The requests that wait for changes."""
        return self._api.waiters

    def answer(self, request: Request) -> Reply | Coroutine[Any, Any, Reply]:
        """Return the response, or what waits for it."""
        line = REQUEST_LINE.match(f"{request.method} {request.target} HTTP/1.1\r\n".encode())
        if line is None:
            return self._route(request)
        fast_path = self._api.fast_path
        lines = "\r\n" + header_lines(("Host", "localhost"), *request.headers) + "\r\n"
        caller = fast_path.caller(lines.encode())
        assert caller is not None
        found = fast_path.answer(line, caller, request.body, fast_path.address_meter("client"))
        assert found is not None
        return _parsed(found) if isinstance(found, bytes) else _parsed_later(found)

    async def _route(self, request: Request) -> Reply:
        routed: Any = RoutedRequest(request)
        routed[PRINCIPAL], routed[METER] = self._api.guard.admit(None, "client")
        routed[RETRIES] = RetryBudget(self._clock, is_forwarded=FORWARDED in routed.headers)
        routed.match_info = found = await self._router.resolve(routed)
        try:
            response = await found.handler(routed)
        except ProblemError as error:
            response = problem_response(error.problem, error.headers).response()
        assert isinstance(response, web.Response)
        assert isinstance(response.body, bytes)
        return Reply(response.status, response.headers, response.body)


class InstancePeers(HttpPeerClient):
    """Forwards requests of an instance over the ways of the simulation."""

    def __init__(self, requests: Requests, source: str) -> None:
        super().__init__(None)
        self._requests = requests
        self._source = source

    @override
    async def _send(self, member: Member, request: ForwardedRequest) -> HttpResponse | None:
        headers = (*request.headers, (FORWARDED, "1"))
        sent = Request(request.target, request.method, headers, request.body)
        try:
            async with asyncio.timeout(self._answer_s + sent.wait_s):
                reply = await self._requests.forward(self._source, member.instance, sent)
        except TimeoutError:
            return None
        if reply is None or reply.status in NOT_AN_ANSWER:
            return None
        return received(reply.status, reply.headers, reply.body)


def _parsed(data: bytes) -> Reply:
    """Return the response in these bytes."""
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Reply(int(status.split()[1]), {name: value for name, _, value in pairs}, body)


async def _parsed_later(data: Coroutine[Any, Any, bytes]) -> Reply:
    return _parsed(await data)
