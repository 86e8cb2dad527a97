"""The HTTP endpoints of a worker: /healthz, /readyz and /metrics."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest

from services.enrichment.errors import PortTakenError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import timedelta

    from contracts.metrics.counts import Counts
    from services.enrichment.health import HealthStatus

log = logging.getLogger(__name__)

STOP_S = 1.0
"""How long an open response may take at shutdown."""


class MonitoredWorker(Protocol):
    """The worker behind the endpoints."""

    def health(self) -> HealthStatus:
        """Return its health now."""
        ...

    def measure(self) -> None:
        """Update the gauges."""
        ...


class Endpoints:
    """The three endpoints of one worker, which counts as stuck after `stuck_after` without progress."""

    def __init__(self, worker: MonitoredWorker, counts: Counts, stuck_after: timedelta) -> None:
        self._worker = worker
        self._stuck_after = stuck_after
        self._registry = CollectorRegistry()
        self._registry.register(counts)
        ProcessCollector(registry=self._registry)

    async def healthz(self, _: web.Request) -> web.Response:
        """Return 200 while the worker polls and makes progress, 503 with the reason when it needs a restart."""
        return _response(self._worker.health().unhealthy(self._stuck_after))

    async def readyz(self, _: web.Request) -> web.Response:
        """Return 200 while the worker is a member of its group, 503 with the reason before that and while it stops."""
        return _response(self._worker.health().unready())

    async def metrics(self, _: web.Request) -> web.Response:
        """Return the metrics of the worker and of the process (CPU, memory, open files)."""
        self._worker.measure()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve the endpoints on this port, or on a free one for 0; yields the port. Raises PortTakenError."""
        application = web.Application()
        for handler in (self.healthz, self.readyz, self.metrics):
            application.router.add_get(f"/{handler.__name__}", handler)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=STOP_S)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                raise PortTakenError(host, port, error.strerror or str(error)) from error
            taken: int = runner.addresses[0][1]
            log.info("endpoints", extra={"facts": {"url": f"http://{host}:{taken}"}})
            yield taken
        finally:
            await runner.cleanup()


def _response(why: str | None) -> web.Response:
    if why is None:
        return web.json_response({"ok": True})
    return web.json_response({"ok": False, "why": why}, status=HTTPStatus.SERVICE_UNAVAILABLE)
