"""What a monitor asks: /healthz, /readyz and /metrics. The first two need no token, and tell of no state."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest

from services.query.http.responses import JSON, SECURITY, HttpResponse
from services.query.lookup.authentication import principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.metrics.counts import Counts


class MonitoredInstance(Protocol):
    """An instance, as its endpoints see it."""

    def unhealthy(self) -> str | None:
        """Why a restart is called for; None while its work moves on."""
        ...

    def unready(self) -> str | None:
        """Why it answers for nothing now; None when it does."""
        ...

    def measure(self) -> None:
        """Bring the gauges up to date."""
        ...


class MonitoringRoutes:
    """The three answers about one instance."""

    def __init__(self, watched: MonitoredInstance, counts: Counts) -> None:
        self._watched = watched
        self._registry = CollectorRegistry()
        self._registry.register(counts)
        ProcessCollector(registry=self._registry)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get(f"/{one.__name__}", one) for one in (self.healthz, self.readyz, self.metrics)]

    async def healthz(self, _: web.Request) -> web.Response:
        """200 while it reads and its work moves on, 503 with the reason when a restart is called for."""
        return _verdict(self._watched.unhealthy())

    async def readyz(self, _: web.Request) -> web.Response:
        """200 while it answers for what the group gave it."""
        return _verdict(self._watched.unready())

    async def metrics(self, request: web.Request) -> web.Response:
        """The catalogue with its values, totals over all keys among them, and the figures of the process beside it."""
        principal(request).check_all()
        self._watched.measure()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _verdict(why: str | None) -> web.Response:
    said = {"ok": True} if why is None else {"ok": False, "why": why}
    status = HTTPStatus.OK if why is None else HTTPStatus.SERVICE_UNAVAILABLE
    headers = (("Content-Type", JSON), ("Cache-Control", "no-store"), *SECURITY)
    return HttpResponse(status, headers, orjson.dumps(said)).response()
