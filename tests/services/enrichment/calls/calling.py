"""The whole calling side against a server that misbehaves: real HTTP, and waits that are noted and not waited."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from aiohttp.abc import AbstractResolver, ResolveResult

from contracts import Application
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.planning.plan import plan
from services.enrichment.calls.assembly import ApiCalls, Runtime, assemble
from services.enrichment.calls.transport import Bounds, HttpTransport
from tests.services.enrichment.fleet import QUICK, START, app, snapshot
from tests.services.enrichment.registry import now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from contracts import Policy
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.calls.transport import Transport
    from tests.services.enrichment.registry import Registry

LIMIT = 1024 * 1024
HERE = (ip_network("127.0.0.0/8"),)
BOUNDS = Bounds(connections=10, largest=LIMIT, allowed=HERE)


class Names(AbstractResolver):
    """Gives these addresses, one time after the other; the last ones stay."""

    def __init__(self, *times: list[str]) -> None:
        self.times = list(times)
        self.lookups = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.lookups += 1
        found = self.times[0] if len(self.times) == 1 else self.times.pop(0)
        return [ResolveResult(hostname=host, host=one, port=port, family=family, proto=0, flags=0) for one in found]

    async def close(self) -> None:
        return


class Calling:
    """A caller whose waits are noted instead of waited."""

    def __init__(self, registry: Registry, transport: Transport, policy: Policy) -> None:
        self.registry = registry
        self.waits: list[float] = []
        self.counts = Counts(CATALOGUE)
        outside = Runtime(now=now, sleep=self._sleep, later=self._later, draw=lambda low, _: low)
        self.calls: ApiCalls = assemble(fleet(policy), {"registry": transport}, self.counts, outside)

    async def answer(self, plate: str) -> Outcome:
        request = next(one for one in plan(app, snapshot(1, plate), START) if one.enrichment == "owner")
        return await self.calls.caller.answer(request)

    def _later(self, _: float, what: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(what)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


def fleet(policy: Policy, **others: Any) -> Application:
    """The fleet's application, with another policy or other parts."""
    parts: dict[str, Any] = {"enrichments": app.enrichments, "apis": {"registry": policy}} | others
    return Application(name=app.name, event=app.event, state=app.state, **parts)


def transport(url: str, **bounds: Any) -> HttpTransport:
    return HttpTransport(url, replace(BOUNDS, **bounds), clock=time.monotonic)


@asynccontextmanager
async def calling(registry: Registry, policy: Policy = QUICK, **bounds: Any) -> AsyncIterator[Calling]:
    """The calling side by a policy, with a transport of these bounds."""
    async with transport(registry.url, redirects=policy.redirects, **bounds) as way:
        yield Calling(registry, way, policy)
