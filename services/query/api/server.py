"""Answers by HTTP: the routes of all pieces, and what holds for each of them."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from contracts.metrics import query as metrics
from services.query.api.access import Holder
from services.query.api.offered import offered
from services.query.api.problems import Problem, ProblemError
from services.query.api.reply import SECURITY, Reply, told
from services.query.errors import PortTakenError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from services.query.api.gate import Gate
    from services.query.parts import Parts, Routed

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)

HOLDER = web.RequestKey("holder", Holder)
GUARDED = "/v1/"
"""Below it a token is needed: there are the states."""
READS = ("GET", "HEAD")
IDLE_S = 75.0
"""How long a connection may stay without a request."""


def holder(request: web.Request) -> Holder:
    """Who asks, of a request below /v1/: its `check` refuses what is beyond the scope."""
    return request[HOLDER]


class Server:
    """One instance's HTTP server. `pieces` say what it answers; `gate` who may ask."""

    def __init__(self, parts: Parts, gate: Gate, pieces: Iterable[Routed]) -> None:
        self._parts = parts
        self._gate = gate
        self._application = web.Application(
            middlewares=[self._answered], client_max_size=parts.settings.largest_request
        )
        for piece in pieces:
            self._application.add_routes(piece.routes())
        self._application.on_response_prepare.append(_secured)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Answer at the settings' port, or on a free one for 0, and give which it is. Raises PortTakenError."""
        settings = self._parts.settings
        runner = web.AppRunner(
            self._application,
            access_log=None,
            keepalive_timeout=IDLE_S,
            shutdown_timeout=settings.stop_within.total_seconds(),
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, settings.http_host, settings.http_port).start()
            except OSError as error:
                detail = error.strerror or str(error)
                raise PortTakenError(settings.http_host, settings.http_port, detail) from error
            port: int = runner.addresses[0][1]
            log.info("answering", extra={"facts": {"url": f"http://{settings.http_host}:{port}"}})
            yield port
        finally:
            await runner.cleanup()

    @web.middleware
    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        began, response = self._parts.clock(), None
        try:
            if request.path.startswith(GUARDED):
                request[HOLDER] = self._gate.admitted(offered(request), request.remote or "")
            response = await handler(request)
        except ProblemError as error:
            response = told(error.problem, error.headers).response()
        except web.HTTPException as error:
            response = _refused(error, request).response()
        except Exception:
            log.exception("failed to answer")
            response = told(Problem("failed", "The service's log has the reason")).response()
        self._parts.counts.add(metrics.REQUESTS, str(response.status))
        if isinstance(response, web.Response):  # others stay open
            self._parts.counts.observe(metrics.REQUEST_SECONDS, self._parts.clock() - began)
        return response


def _refused(error: web.HTTPException, request: web.Request) -> Reply:
    """What aiohttp itself refuses. Its own words are not handed out."""
    if isinstance(error, web.HTTPMethodNotAllowed) or request.method not in READS:
        allowed = ", ".join(sorted(error.allowed_methods if isinstance(error, web.HTTPMethodNotAllowed) else READS))
        return told(Problem("read_only", f"{request.method} is not answered here: {allowed} is"), (("Allow", allowed),))
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return told(Problem("too_large", "Ask for less at a time"))
    if isinstance(error, web.HTTPNotFound):
        return told(Problem("unknown_path", "/openapi.json tells which there are"))
    return told(Problem("bad_request", error.reason))


async def _secured(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in SECURITY:
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)
