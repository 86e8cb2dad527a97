"""Answers by HTTP: the routes of all pieces, and what holds for each of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from contracts.metrics import query as metrics
from services.query.errors import PortTakenError
from services.query.http.connection import IDLE_S, AiohttpConnection, FastConnection, RequestPacer
from services.query.http.credentials import credentials_of
from services.query.http.request_guard import METER
from services.query.http.responses import SECURITY, HttpResponse, problem_response
from services.query.http.retry import RetryBudget, retried
from services.query.lookup.authentication import PRINCIPAL
from services.query.lookup.problem import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from services.query.dependencies import Parts, Routes
    from services.query.http.fast_path import FastPath
    from services.query.http.request_guard import RequestGuard
    from services.query.settings import QuerySettings

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)

GUARDED = ("/v1/", "/metrics")
"""What begins so needs a token: the states, and figures of them."""
READS = ("GET", "HEAD")
CONNECTION: dict[str, Any] = {"access_log": None, "keepalive_timeout": IDLE_S}
BACKLOG = 1024


class HttpServer:
    """One instance's HTTP server: `pieces` say what it answers, `gate` who may ask; `hot` spares aiohttp some of it."""

    def __init__(self, parts: Parts, gate: RequestGuard, pieces: Iterable[Routes], hot: FastPath | None = None) -> None:
        self._parts = parts
        self._gate = gate
        self._hot = hot
        self._turns = RequestPacer()
        self._application = web.Application(
            middlewares=[self._answered], client_max_size=parts.settings.largest_request
        )
        for piece in pieces:
            self._application.add_routes(piece.routes())
        self._application.on_response_prepare.append(_secured)

    @asynccontextmanager
    async def serving(self, listening: socket.socket | None = None) -> AsyncIterator[int]:
        """Answer at the socket, or where the settings say, and give the port. Raises PortTakenError."""
        settings = self._parts.settings
        stop_s = settings.stop_within.total_seconds()
        runner, opened = web.AppRunner(self._application, shutdown_timeout=stop_s), set[FastConnection]()
        await runner.setup()
        with bind(settings) if listening is None else nullcontext(listening) as sock:
            try:
                taking = await asyncio.get_running_loop().create_server(self._protocol(runner, opened), sock=sock)
                log.info("answering", extra={"facts": {"url": url_of(settings, sock)}})
                yield sock.getsockname()[1]
                taking.close()
            finally:
                for one in list(opened):
                    one.close()
                await runner.cleanup()

    def _protocol(self, runner: web.AppRunner, opened: set[FastConnection]) -> Callable[[], asyncio.Protocol]:
        server = runner.server
        assert server is not None  # noqa: S101  # it was set up
        answered = partial(AiohttpConnection, server, loop=asyncio.get_running_loop(), **CONNECTION)
        return answered if self._hot is None else partial(FastConnection, self._hot, opened, answered)

    @web.middleware
    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        began, response = self._parts.clock(), None
        await self._turns.next()
        try:
            self._gate.check_host(request)
            self._check_size(request)
            if request.path.startswith(GUARDED):
                address = request.remote or ""
                request[PRINCIPAL] = who = self._gate.admitted(credentials_of(request), address)
                request[METER] = self._gate.meter(who, address)
            response = await retried(request, handler, RetryBudget(request, self._parts.clock))
        except ProblemError as error:
            response = problem_response(error.problem, error.headers).response()
        except web.HTTPException as error:
            response = _refused(error, request).response()
        except web.RequestPayloadError:
            response = problem_response(
                Problem("bad_request", "The body is not what the request's headers say")
            ).response()
            request.content.feed_eof()  # nothing more can be read of this connection
            response.force_close()
        except Exception:
            log.exception("failed to answer")
            if request.writer.output_size:  # the answer has begun: nothing else can be said
                raise
            response = problem_response(Problem("failed", "The service's log has the reason")).response()
        self._parts.counts.add(metrics.REQUESTS, str(response.status))
        if isinstance(response, web.Response):  # others stay open
            self._parts.counts.observe(metrics.REQUEST_SECONDS, self._parts.clock() - began)
        return response

    def _check_size(self, request: web.Request) -> None:
        """Refuse a body by its length, before any of it is read. Raises ProblemError (413)."""
        most = self._parts.settings.largest_request
        if (request.content_length or 0) > most:
            raise ProblemError(Problem("too_large", f"A request's body may have {most} bytes"))


def bind(settings: QuerySettings) -> socket.socket:
    """The socket at which it is to answer; who connects before it does has to wait. Raises PortTakenError."""
    host, port = settings.http_host, settings.http_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTakenError(host, port, error.strerror or str(error)) from error


def url_of(settings: QuerySettings, listening: socket.socket) -> str:
    """Where others reach it."""
    host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
    return settings.url or f"http://{host}:{listening.getsockname()[1]}"


def _refused(error: web.HTTPException, request: web.Request) -> HttpResponse:
    """What aiohttp itself refuses. Its own words are not handed out."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return _read_only(request, sorted(error.allowed_methods))
    if isinstance(error, web.HTTPNotFound):
        if request.method not in READS:
            return _read_only(request, READS)
        return problem_response(Problem("unknown_path", "/openapi.json tells which there are"))
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return problem_response(Problem("too_large", "Ask for less at a time"))
    return problem_response(Problem("bad_request", error.reason))


def _read_only(request: web.Request, allowed: Sequence[str]) -> HttpResponse:
    named = ", ".join(allowed)
    return problem_response(
        Problem("read_only", f"{request.method} is not answered here: {named} is"), (("Allow", named),)
    )


async def _secured(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in SECURITY:
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)
