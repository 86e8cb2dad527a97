"""The circuit breaker: when it opens, which calls probe, and when it closes."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from contracts import Breaker
from services.enrichment.calls.circuit_breaker import BreakerState, CircuitBreaker, LatestFailure
from services.enrichment.calls.permits import Permit
from tests.services.enrichment.calls.time import Time

SECOND = timedelta(seconds=1)
STUCK_S = 5
"""Longer than anything here takes: who waits that long waits for ever."""
POLICY = Breaker(share=0.5, calls=10, failures=3, window=60 * SECOND, open_for=5 * SECOND, probes=3)


class Watched:
    """A breaker, its time, and the states that it reported."""

    def __init__(self, policy: Breaker = POLICY) -> None:
        self.time = Time()
        self.states: list[BreakerState] = []
        self.failure: LatestFailure | None = None
        self.breaker = CircuitBreaker(policy, clock=self.time.clock, later=self.time.later, on_change=self._note)

    def _note(self, state: BreakerState, failure: LatestFailure | None) -> None:
        if not self.states or state is not self.states[-1]:
            self.states.append(state)
        self.failure = failure

    def last(self) -> BreakerState:
        return self.states[-1]

    async def call(self, *, failed: bool | None) -> None:
        async with asyncio.timeout(STUCK_S):
            self.breaker.release(await self.breaker.acquire(), failed=failed)

    async def opens(self) -> None:
        for _ in range(POLICY.failures):
            await self.call(failed=True)
        assert self.last() is BreakerState.OPEN

    async def half_opens(self) -> None:
        await self.opens()
        await self.time.passes(5)
        assert self.last() is BreakerState.HALF_OPEN


async def test_opens_at_the_number_and_the_share_of_failures() -> None:
    one = Watched()
    for failed in (True, True, False, False, False):
        await one.call(failed=failed)
    await one.call(failed=True)
    assert one.states == [BreakerState.CLOSED, BreakerState.OPEN], "3 of 6 failed"


async def test_the_failure_is_the_latest_one_with_its_count_whichever_turn_its_call_began_in() -> None:
    one = Watched()
    for failed in (True, False):
        await one.call(failed=failed)
    before = [await one.breaker.acquire() for _ in range(9)]
    for permit in before[:3]:
        one.breaker.release(permit, failed=True, reason="connection refused")
    assert (one.last(), one.failure) == (BreakerState.OPEN, LatestFailure("connection refused", 3)), (
        "the first was followed by a success"
    )
    for permit in before[3:7]:
        one.breaker.release(permit, failed=True, reason="not JSON")
    assert one.failure == LatestFailure("not JSON", 4)
    one.breaker.release(before[7], failed=False, reason="does not fit")
    assert one.failure == LatestFailure("not JSON", 4), "what is no failure of the API is no reason"
    await one.time.passes(5)
    for _ in range(3):
        one.breaker.release(await one.breaker.acquire(), failed=False)
    assert [one.last(), one.failure] == [BreakerState.CLOSED, None]


async def test_few_failures_or_a_small_share_do_not_open_it() -> None:
    few, rare = Watched(), Watched()
    for _ in range(2):
        await few.call(failed=True)
    for _ in range(100):
        for failed in (True, False, False):
            await rare.call(failed=failed)
    assert few.states == rare.states == [BreakerState.CLOSED]


async def test_calls_of_long_ago_and_beyond_the_last_ones_are_forgotten() -> None:
    one = Watched()
    for failed in (True, True):
        await one.call(failed=failed)
    await one.time.passes(60)
    await one.call(failed=True)
    assert one.states == [BreakerState.CLOSED]
    for _ in range(50):
        await one.call(failed=False)
    for _ in range(5):
        await one.call(failed=True)
    assert one.states == [BreakerState.CLOSED, BreakerState.OPEN], "5 of the last 10"


async def test_while_it_is_open_calls_wait_and_then_the_first_ones_try() -> None:
    one = Watched()
    await one.opens()
    waiting = [asyncio.create_task(one.breaker.acquire()) for _ in range(5)]
    await one.time.passes(4.9)
    assert not any(task.done() for task in waiting)
    await one.time.passes(0.1)
    assert [task.done() for task in waiting] == [True] * 3 + [False] * 2
    for task in waiting[:2]:
        one.breaker.release(task.result(), failed=False)
    await one.time.settles()
    assert one.last() is BreakerState.CLOSED, "two of three must succeed when half of the calls may not fail"
    assert all(task.done() for task in waiting)


async def test_probes_that_fail_open_it_again() -> None:
    one = Watched()
    await one.half_opens()
    await one.call(failed=True)
    await one.call(failed=True)
    assert one.last() is BreakerState.OPEN
    assert one.breaker.is_blocked
    await one.time.passes(5)
    assert one.last() is BreakerState.HALF_OPEN


async def test_a_probe_that_is_given_up_leaves_its_place_to_another() -> None:
    one = Watched()
    await one.opens()
    waiting = [asyncio.create_task(one.breaker.acquire()) for _ in range(4)]
    await one.time.passes(5)
    one.breaker.release(waiting[0].result(), failed=None)
    await one.time.settles()
    assert waiting[3].done()


async def test_one_that_is_cancelled_as_it_is_let_through_leaves_its_place_too() -> None:
    one = Watched()
    await one.opens()
    waiting = [asyncio.create_task(one.breaker.acquire()) for _ in range(4)]
    await one.time.settles()
    one.time.later(5, waiting[0].cancel)  # after it was let through, and before it ran
    await one.time.passes(5)
    assert waiting[0].cancelled()
    assert waiting[3].done()


async def test_the_outcome_of_a_call_before_the_last_change_does_not_count() -> None:
    one = Watched()
    late = [await one.breaker.acquire() for _ in range(20)]
    await one.half_opens()
    await one.call(failed=False)
    await one.call(failed=False)
    for permit in late:
        one.breaker.release(permit, failed=True)
    assert one.last() is BreakerState.CLOSED, "hung calls that time out after the API came back"


async def test_waiters_are_notified_when_it_unblocks() -> None:
    one = Watched()
    await one.opens()
    waiting = asyncio.create_task(one.breaker.wait_until_unblocked())
    await one.time.passes(4.9)
    assert not waiting.done()
    await one.time.passes(0.1)
    assert waiting.done()


async def test_calls_wait_while_all_probes_are_in_flight() -> None:
    one = Watched()
    await one.half_opens()
    probes = [await one.breaker.acquire() for _ in range(POLICY.probes)]
    waiting = asyncio.create_task(one.breaker.wait_until_unblocked())
    await one.time.settles()
    assert not waiting.done()
    for probe in probes:
        one.breaker.release(probe, failed=False)
    await one.time.settles()
    assert waiting.done()


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=60))
def test_it_never_stays_shut(calls: list[tuple[bool, float]]) -> None:
    """After any history, every call is made once the API works."""

    async def check() -> None:
        one = Watched()
        for failed, seconds in calls:
            call = asyncio.create_task(one.call(failed=failed))
            await one.time.passes(seconds)
            if not call.done():
                call.cancel()
        for _ in range(POLICY.probes + 1):
            call = asyncio.create_task(one.call(failed=False))
            await one.time.passes(5)
            assert call.done()
        assert one.last() is BreakerState.CLOSED

    asyncio.run(check())


async def test_a_pause_that_a_call_of_an_earlier_period_requests_is_respected() -> None:
    one = Watched()
    late = [await one.breaker.acquire() for _ in range(2)]
    await one.opens()
    one.breaker.release(late[0], failed=True, pause_s=20)
    await one.time.passes(19.9)
    assert one.last() is BreakerState.OPEN
    await one.time.passes(0.1)
    assert one.last() is BreakerState.HALF_OPEN
    one.breaker.release(late[1], failed=True, pause_s=20)
    assert one.last() is BreakerState.OPEN


async def test_a_probe_whose_sibling_opened_the_breaker_may_request_a_longer_pause() -> None:
    one = Watched()
    await one.half_opens()
    probes = [await one.breaker.acquire() for _ in range(3)]
    for permit in probes[:2]:
        one.breaker.release(permit, failed=True)
    one.breaker.release(probes[2], failed=True, pause_s=30)
    await one.time.passes(29.9)
    assert one.last() is BreakerState.OPEN


async def test_no_call_begins_with_a_permit_of_before_a_pause() -> None:
    one = Watched()
    await one.opens()
    waiting = [asyncio.create_task(one.breaker.acquire()) for _ in range(2)]
    await one.time.settles()
    one.time.later(5, lambda: one.breaker.release(Permit(), failed=True, pause_s=30))  # as soon as it is half open
    await one.time.passes(5)
    assert one.last() is BreakerState.OPEN
    assert not any(task.done() for task in waiting)
