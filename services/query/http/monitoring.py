"""The endpoints of monitors: /healthz, /readyz and /metrics. The first two need no token, and contain no state."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest

from services.query.http.request_context import principal
from services.query.http.responses import JSON, SECURITY, HttpResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.metrics.counts import Counts


class MonitoredInstance(Protocol):
    """An instance, as its endpoints see it."""

    def unhealthy(self) -> str | None:
        """Why it needs a restart; None while it makes progress."""
        ...

    def unready(self) -> str | None:
        """Why it is not ready; None if it is."""
        ...

    def measure(self) -> None:
        """Bring the gauges up to date."""
        ...


class MonitoringRoutes:
    """The three endpoints of one instance."""

    def __init__(self, instance: MonitoredInstance, counts: Counts) -> None:
        self._instance = instance
        self._registry = CollectorRegistry()
        self._registry.register(counts)
        ProcessCollector(registry=self._registry)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [web.get(f"/{one.__name__}", one) for one in (self.healthz, self.readyz, self.metrics)]

    async def healthz(self, _: web.Request) -> web.Response:
        """200 while it makes progress, 503 with the reason when it needs a restart."""
        return _health_response(self._instance.unhealthy())

    async def readyz(self, _: web.Request) -> web.Response:
        """200 while it answers for its partitions, 503 with the reason otherwise."""
        return _health_response(self._instance.unready())

    async def metrics(self, request: web.Request) -> web.Response:
        """All metrics, those of the process included. Some are totals over all keys, so the token must read all."""
        principal(request).check_all()
        self._instance.measure()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _health_response(why: str | None) -> web.Response:
    body = {"ok": True} if why is None else {"ok": False, "why": why}
    status = HTTPStatus.OK if why is None else HTTPStatus.SERVICE_UNAVAILABLE
    headers = (("Content-Type", JSON), ("Cache-Control", "no-store"), *SECURITY)
    return HttpResponse(status, headers, orjson.dumps(body)).response()
