"""What a worker answers by HTTP: /healthz, /readyz and /metrics."""

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
    from services.enrichment.health import Standing

log = logging.getLogger(__name__)

STOP_S = 1.0
"""How long an answer under way may take when the worker ends."""


class Watched(Protocol):
    """A worker, as its endpoints see it."""

    def standing(self) -> Standing:
        """Where it stands now."""
        ...

    def measure(self) -> None:
        """Bring the gauges up to date."""
        ...


class Endpoints:
    """The three answers about one worker, which is stuck after `stuck_after` without progress."""

    def __init__(self, watched: Watched, counts: Counts, stuck_after: timedelta) -> None:
        self._watched = watched
        self._stuck_after = stuck_after
        self._registry = CollectorRegistry()
        self._registry.register(counts)
        ProcessCollector(registry=self._registry)

    async def healthz(self, _: web.Request) -> web.Response:
        """200 while the worker polls and its work moves on, 503 with the reason when a restart is called for."""
        return _verdict(self._watched.standing().unhealthy(self._stuck_after))

    async def readyz(self, _: web.Request) -> web.Response:
        """200 once the worker is a member of its group and has the addresses of its APIs, until it stops."""
        return _verdict(self._watched.standing().unready())

    async def metrics(self, _: web.Request) -> web.Response:
        """The catalogue with its values, and the figures of the process (CPU, memory, open files) beside it."""
        self._watched.measure()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Answer on this port, or on a free one for 0, and give which it is. Raises PortTakenError."""
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


def _verdict(why: str | None) -> web.Response:
    if why is None:
        return web.json_response({"ok": True})
    return web.json_response({"ok": False, "why": why}, status=HTTPStatus.SERVICE_UNAVAILABLE)
