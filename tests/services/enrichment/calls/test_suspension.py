"""A suspension in a clock that only the test advances."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contracts.alerts.deliveries import deliveries
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.calls.breaker_report import BreakerReport
from services.enrichment.calls.caller import Outcome
from services.enrichment.calls.suspension import FailureLimits, Suspension
from tests.services.enrichment.alerted import crossing
from tests.services.enrichment.calls.time import EPOCH, Time

if TYPE_CHECKING:
    from contracts.planning.request import Request

FIRST, EVERY_S = 3, 10.0


class World:
    """One API with requests that a test starts, and the names of those that it accepts."""

    def __init__(self) -> None:
        self.time, self.counts = Time(), Counts(metrics.CATALOGUE)
        report = BreakerReport("pager", self.counts, lambda: EPOCH)
        limits = FailureLimits(window=100, share=0.95, first=FIRST, trial_s=EVERY_S)
        self.suspension = Suspension("pager", limits, later=self.time.later, report=report, counts=self.counts)
        self.accepts: set[str] = set()
        self.tried: list[str] = []

    async def answer(self, request: Request) -> Outcome:
        self.tried.append(request.device_id)
        await asyncio.sleep(0)
        is_accepted = request.device_id in self.accepts
        return Outcome("result") if is_accepted else Outcome("failure", reason="status 401")

    def start(self, *names: str) -> list[asyncio.Task[Outcome]]:
        requests = [deliveries("too_high", crossing(name, 1)[0])[0] for name in names]
        return [asyncio.create_task(self.suspension.outcome(self, request)) for request in requests]


async def test_after_the_first_failures_the_others_wait_and_are_tried_one_by_one() -> None:
    world = World()
    tasks = world.start("a", "b", "c", "d", "e")
    await world.time.settles()
    assert [task.done() for task in tasks] == [True, True, False, False, False]
    assert (world.suspension.is_open, world.counts.get(metrics.BREAKER, "pager")) == (False, 2)
    await world.time.passes(3 * EVERY_S)
    assert world.tried[5:] == ["c", "d", "e"], "in turn: one that always fails does not stop the others"
    assert not any(task.done() for task in tasks[2:])
    world.accepts = {"d", "e"}
    await world.time.passes(2 * EVERY_S)
    assert world.suspension.is_open
    assert [task.result().status for task in (*tasks[:2], *tasks[3:])] == ["failure", "failure", "result", "result"]
    assert tasks[2].result().reason == "status 401", "the API accepts others, so this is the request's own failure"
    assert world.counts.get(metrics.BREAKER, "pager") == 0


async def test_where_no_request_waits_any_more_the_next_ones_are_tried() -> None:
    world = World()
    tasks = world.start("a", "b", "c")
    await world.time.settles()
    tasks[2].cancel()
    await world.time.settles()
    assert not world.suspension.is_open
    await world.time.passes(EVERY_S)
    assert world.suspension.is_open
    (next_one,) = world.start("d")
    await world.time.settles()
    assert (next_one.done(), world.suspension.is_open) == (False, False)
    world.accepts = {"d"}
    await world.time.passes(EVERY_S)
    assert next_one.result().status == "result"


async def test_a_success_ends_the_suspension_where_no_request_waits_any_more() -> None:
    world = World()
    tasks = world.start("a", "b", "c")
    await world.time.settles()
    tasks[2].cancel()
    world.accepts = {"d"}
    await world.time.passes(EVERY_S)
    (accepted,) = world.start("d")
    await world.time.settles()
    assert (accepted.result().status, world.counts.get(metrics.BREAKER, "pager")) == ("result", 0)
    (refused,) = world.start("e")
    await world.time.settles()
    assert (refused.result().status, world.suspension.is_open) == ("failure", True), "its own failure: nothing waits"


async def test_a_success_that_began_before_the_suspension_does_not_end_it() -> None:
    world = World()
    world.accepts = {"d"}
    tasks = world.start("a", "b", "c", "d")
    await world.time.settles()
    assert [task.done() for task in tasks] == [True, True, False, True]
    assert (world.suspension.is_open, world.counts.get(metrics.BREAKER, "pager")) == (False, 2)


async def test_an_api_that_accepts_some_is_not_suspended() -> None:
    world = World()
    world.accepts = {"a"}
    tasks = world.start("a", *"bcdefgh")
    await world.time.settles()
    assert [task.result().status for task in tasks] == ["result", *["failure"] * 7]
