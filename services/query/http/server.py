"""The HTTP server: routes of all parts of the service, with admission, retries and problems for each of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager, closing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from contracts.metrics import query as metrics
from services.query.http.connection import IDLE_S, AiohttpConnection, FastConnection, RequestPacer
from services.query.http.peer_client import FORWARDED
from services.query.http.request_context import METER, PRINCIPAL, RETRIES, credentials_of
from services.query.http.responses import SECURITY, HttpResponse, failed_response, problem_response
from services.query.http.retry import RetryBudget
from services.query.lookup.problems import Problem, ProblemError
from services.runtime.errors import PortTakenError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence

    from services.query.dependencies import Dependencies
    from services.query.http.fast_path import FastPath
    from services.query.http.request_guard import RequestGuard
    from services.query.settings import QuerySettings

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)

GUARDED = ("/v1/", "/metrics")
"""Prefixes of paths that need a token: the states, and figures about them."""
READS = ("GET", "HEAD")
CONNECTION: dict[str, Any] = {"access_log": None, "keepalive_timeout": IDLE_S}
BACKLOG = 1024


class Routes(Protocol):
    """A part of the service that answers requests."""

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """Its routes. A handler below /v1/ must check the scope of the sender.

        The sender is `request.sender`; of a request of aiohttp, `principal(request)`.
        """
        ...


class HttpServer:
    """The HTTP server of one instance. With `fast_path`, it answers the most frequent reads without aiohttp."""

    def __init__(
        self,
        dependencies: Dependencies,
        guard: RequestGuard,
        routes: Iterable[Routes],
        fast_path: FastPath | None = None,
    ) -> None:
        self._dependencies = dependencies
        self._guard = guard
        self._fast_path = fast_path
        self._pacer = RequestPacer()
        self._application = web.Application(
            middlewares=[self._respond], client_max_size=dependencies.settings.largest_request
        )
        for one in routes:
            self._application.add_routes(one.routes())
        self._application.on_response_prepare.append(_set_headers)

    @asynccontextmanager
    async def serving(self, listening: socket.socket | None = None) -> AsyncIterator[int]:
        """Serve on the socket, or at the address of the settings; yields the port. Raises PortTakenError."""
        settings = self._dependencies.settings
        stop_s = settings.stop_within.total_seconds()
        runner, opened = web.AppRunner(self._application, shutdown_timeout=stop_s), set[FastConnection]()
        await runner.setup()
        with bind(settings) if listening is None else nullcontext(listening) as sock:
            try:
                server = await asyncio.get_running_loop().create_server(self._protocol(runner, opened), sock=sock)
                with closing(server):  # also after a failure: closing uvloop waits for all servers
                    log.info("answering", extra={"facts": {"url": url_of(settings, sock)}})
                    yield sock.getsockname()[1]
            finally:
                await asyncio.gather(_close(opened, stop_s), runner.cleanup())

    def _protocol(self, runner: web.AppRunner, opened: set[FastConnection]) -> Callable[[], asyncio.Protocol]:
        server = runner.server
        assert server is not None  # noqa: S101  # `setup` has made it
        by_aiohttp = partial(AiohttpConnection, server, loop=asyncio.get_running_loop(), **CONNECTION)
        return by_aiohttp if self._fast_path is None else partial(FastConnection, self._fast_path, opened, by_aiohttp)

    @web.middleware
    async def _respond(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        began, response = self._dependencies.clock(), None
        await self._pacer.next()
        try:
            self._guard.check_host(request)
            self._check_size(request)
            if request.path.startswith(GUARDED):
                admitted = self._guard.admit(credentials_of(request), request.remote or "")
                request[PRINCIPAL], request[METER] = admitted
                is_forwarded = FORWARDED in request.headers
                request[RETRIES] = RetryBudget(self._dependencies.clock, is_forwarded=is_forwarded)
            response = await handler(request)
        except ProblemError as error:
            response = problem_response(error.problem, error.headers).response()
        except web.HTTPException as error:
            response = _rejection(error, request).response()
        except web.RequestPayloadError:
            detail = "The body does not match the headers of the request, or does not arrive in time"
            response = problem_response(Problem("bad_request", detail)).response()
            request.content.feed_eof()  # the connection cannot be read any further
            response.force_close()
        except Exception:
            log.exception("failed to answer")
            if request.writer.output_size:  # the response has begun, and cannot become another
                raise
            response = failed_response().response()
        self._dependencies.counts.add(metrics.REQUESTS, str(response.status))
        if isinstance(response, web.Response):  # streams stay open
            self._dependencies.counts.observe(metrics.REQUEST_SECONDS, self._dependencies.clock() - began)
        return response

    def _check_size(self, request: web.Request) -> None:
        """Check the length of the body before it is read. Raises ProblemError (413)."""
        most = self._dependencies.settings.largest_request
        if (request.content_length or 0) > most:
            raise ProblemError(Problem("too_large", f"The body of a request may have {most} bytes"))


async def _close(connections: Collection[FastConnection], within_s: float) -> None:
    """Close connections, after the responses to requests that wait."""
    for connection in list(connections):
        connection.close()
    waiting = [connection.waiting for connection in connections if connection.waiting is not None]
    if waiting:
        await asyncio.wait(waiting, timeout=within_s)
    for connection in list(connections):
        if connection.waiting is not None:
            connection.abort()


def bind(settings: QuerySettings) -> socket.socket:
    """The socket of the server. Clients that connect before it serves wait. Raises PortTakenError."""
    host, port = settings.http_host, settings.http_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTakenError("The service cannot listen", host, port, error.strerror or str(error)) from error


def url_of(settings: QuerySettings, listening: socket.socket) -> str:
    """The URL at which clients and other instances reach this one."""
    host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
    return settings.url or f"http://{host}:{listening.getsockname()[1]}"


def _rejection(error: web.HTTPException, request: web.Request) -> HttpResponse:
    """The response to a request that aiohttp rejects, as a problem."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return _read_only(request, sorted(error.allowed_methods))
    if isinstance(error, web.HTTPNotFound):
        if request.method not in READS:
            return _read_only(request, READS)
        return problem_response(Problem("unknown_path", "/openapi.json lists the paths"))
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return problem_response(Problem("too_large", "Request less at a time"))
    return problem_response(Problem("bad_request", error.reason))


def _read_only(request: web.Request, allowed: Sequence[str]) -> HttpResponse:
    methods = ", ".join(allowed)
    problem = Problem("read_only", f"{request.method} is not allowed here: use {methods}")
    return problem_response(problem, (("Allow", methods),))


async def _set_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in SECURITY:
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)
