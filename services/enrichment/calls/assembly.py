"""Puts the calling side together: from an application and a transport for each API to what answers requests."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from services.enrichment.calls.access import Access
from services.enrichment.calls.answers import Answers
from services.enrichment.calls.api import PolicedApi
from services.enrichment.calls.batches import Batches
from services.enrichment.calls.breaker import CircuitBreaker
from services.enrichment.calls.breaker_report import BreakerReport
from services.enrichment.calls.breakers import Breakers
from services.enrichment.calls.caller import Caller
from services.enrichment.calls.door import Door, OpenDoor
from services.enrichment.calls.tries import Tries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from contracts import Application, Enrichment, Policy
    from contracts.metrics.counts import Counts
    from services.enrichment.calls.breaker import Later
    from services.enrichment.calls.transport import Transport


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def call_later(seconds: float, what: Callable[[], None]) -> object:
    """Have the event loop call something after a time."""
    return asyncio.get_running_loop().call_later(seconds, what)


@dataclass(frozen=True)
class Outside:
    """Time and chance, as the calling side meets them."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    later: Later = call_later
    draw: Callable[[float, float], float] = random.uniform


@dataclass(frozen=True)
class Calls:
    """The calling side: what answers requests, and which APIs can be called."""

    caller: Caller
    breakers: Breakers
    batches: tuple[Batches, ...] = field(default=())

    def close(self) -> None:
        """Give up what is under way for nobody in particular."""
        for one in self.batches:
            one.close()


def assembled(
    application: Application, transports: Mapping[str, Transport], counts: Counts, outside: Outside | None = None
) -> Calls:
    """The calling side of an application, with one transport for each of its APIs."""
    around = outside or Outside()
    doors = {api: _door(api, policy, counts, around) for api, policy in application.apis.items()}
    ways = {
        api: _Way(api, policy, transports[api], doors[api], counts=counts, around=around)
        for api, policy in application.apis.items()
    }
    apis = {one.name: ways[one.api].api(one) for one in application.enrichments}
    tries = {one.name: ways[one.api].tries(one) for one in application.enrichments}
    return Calls(Caller(application, apis, tries), Breakers(doors), tuple(way.batches for way in ways.values()))


def _door(api: str, policy: Policy, counts: Counts, around: Outside) -> Door:
    """The breaker of an API, which reports its state and why calls fail."""
    if policy.breaker is None:
        return OpenDoor()
    report = BreakerReport(api, counts, around.now)
    return CircuitBreaker(policy.breaker, clock=around.clock, later=around.later, told=report.note)


class _Way:
    """What the enrichments of one API share, and what each has of its own."""

    def __init__(  # noqa: PLR0913  # it is put together here
        self, name: str, policy: Policy, transport: Transport, door: Door, *, counts: Counts, around: Outside
    ) -> None:
        self._name = name
        self._policy = policy
        self._counts = counts
        self._around = around
        self._access = Access(name, policy, transport, door, clock=around.clock, now=around.now, counts=counts)
        self._answers = Answers(name, policy.cache, around.clock, counts)
        self.batches = Batches(self._access, policy, around.later)

    def api(self, one: Enrichment) -> PolicedApi:
        return PolicedApi(one, self._access, self._answers, self.batches, self.tries(one))

    def tries(self, one: Enrichment) -> Tries:
        again = partial(self._counts.add, metrics.RETRIES, self._name, one.name)
        return Tries(self._policy, sleep=self._around.sleep, draw=self._around.draw, again=again)
