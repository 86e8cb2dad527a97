"""The endpoints of monitors: /healthz, /readyz and /metrics. The first two need no token, and contain no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from contracts.api.admin import HEALTHZ, METRICS, READYZ
from services.query.http.request_context import principal
from services.query.http.responses import JSON, NOT_CACHED, HttpResponse, header_lines
from services.runtime.monitoring import health_answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.runtime.monitoring import MonitoredProcess


class MonitoringRoutes:
    """The three endpoints of one instance."""

    def __init__(self, instance: MonitoredProcess) -> None:
        self._instance = instance

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        handlers = ((HEALTHZ, self.healthz), (READYZ, self.readyz), (METRICS, self.metrics))
        return [web.get(endpoint.path, handler) for endpoint, handler in handlers]

    async def healthz(self, _: web.Request) -> web.Response:
        """200 while it makes progress, 503 with the reason when it needs a restart."""
        return _health_response(self._instance.unhealthy())

    async def readyz(self, _: web.Request) -> web.Response:
        """200 while it answers for its partitions, 503 with the reason otherwise."""
        return _health_response(self._instance.unready())

    async def metrics(self, request: web.Request) -> web.Response:
        """All metrics, those of the process included. Some are totals over all keys, so the token must read all."""
        principal(request).check_all()
        return web.Response(body=self._instance.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _health_response(problem: str | None) -> web.Response:
    status, body = health_answer(problem)
    headers = header_lines(("Content-Type", JSON)) + NOT_CACHED
    return HttpResponse(status, headers, body).response()
