"""The whole calling side against a server that misbehaves: real HTTP, and waits that are noted and not waited."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from contracts import Application
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.plan import plan
from services.enrichment.calls.assembly import Calls, Outside, assembled
from services.enrichment.calls.transport import AiohttpTransport, Bounds
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


class Calling:
    """A caller whose waits are noted instead of waited."""

    def __init__(self, registry: Registry, transport: Transport, policy: Policy) -> None:
        self.registry = registry
        self.waits: list[float] = []
        self.counts = Counts(CATALOGUE)
        outside = Outside(now=now, sleep=self._sleep, later=self._later, draw=lambda low, _: low)
        self.calls: Calls = assembled(fleet(policy), {"registry": transport}, self.counts, outside)

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


def transport(url: str, **bounds: Any) -> AiohttpTransport:
    return AiohttpTransport(url, replace(BOUNDS, **bounds), clock=time.monotonic)


@asynccontextmanager
async def calling(registry: Registry, policy: Policy = QUICK, **bounds: Any) -> AsyncIterator[Calling]:
    """The calling side by a policy, with a transport of these bounds."""
    async with transport(registry.url, redirects=policy.redirects, **bounds) as way:
        yield Calling(registry, way, policy)
