"""A scripted API in memory, and its callers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.planning.plan import plan
from services.enrichment.calls.assembly import assemble
from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.calling import fleet
from tests.services.enrichment.calls.virtual import longest, outside
from tests.services.enrichment.fleet import START, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts import Policy
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.calls.transport import Post
    from tests.services.enrichment.calls.virtual import Draw

LATENCY_S = 0.05


def good(target: str) -> Response:
    return Response(200, json.dumps({"name": target}).encode())


class Scripted:
    """Answers by a function of the target, after a while, and records the requests. Implements Transport."""

    def __init__(self, answers: Callable[[str], Response] = good) -> None:
        self.answers = answers
        self.requests: list[tuple[float, str]] = []
        self.within: list[float] = []
        self.under_way = self.most = 0

    async def get(self, target: str, within: float) -> Response:
        self.requests.append((asyncio.get_running_loop().time(), target))
        self.within.append(within)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(LATENCY_S)
        finally:
            self.under_way -= 1
        return self.answers(target)

    async def post(self, post: Post, within: float) -> Response:
        return await self.get(post.target, within)


class Desk:
    """The callers of a scripted API, in a virtual event loop."""

    def __init__(self, api: Scripted, policy: Policy, *, draw: Draw = longest, **others: Any) -> None:
        self.counts = Counts(CATALOGUE)
        self.app = fleet(policy, **others)
        self.calls = assemble(self.app, {"registry": api}, self.counts, outside(draw))

    async def answer(self, plate: str, enrichment: str = "owner") -> Outcome:
        request = next(one for one in plan(self.app, snapshot(1, plate), START) if one.enrichment == enrichment)
        return await self.calls.caller.answer(request)

    async def answers(self, count: int) -> list[Outcome]:
        """Request this many cars at once."""
        return await asyncio.gather(*(self.answer(f"P{number}") for number in range(count)))
