"""Waiting requests: bounded in number and time, and forgotten when they end."""

from __future__ import annotations

import asyncio

import pytest

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from services.query.lookup.key_waiters import KeyWaiters
from services.query.lookup.problems import ProblemError
from services.query.store import Change, Entry
from tests.deadline import DEADLINE_S
from tests.services.query.in_memory import until

ENTRY = Entry(window_start=0, epoch=0, version=1, event_time=0, partition=0, offset=0, value=b"{}")


def here() -> bool:
    return True


async def test_a_change_wakes_only_waiters_of_its_key() -> None:
    waits = KeyWaiters(10, Counts(CATALOGUE))
    one, other = (asyncio.create_task(waits.wait("flights", key, 10, here)) for key in ("UA1", "UA2"))
    await until(lambda: waits.waiting == 2)
    waits.changed([Change("planes", "UA1", ENTRY), Change("flights", "UA1", ENTRY), Change("flights", "UA1", None)])
    assert await one
    assert not other.done()
    waits.changed([Change("flights", "UA2", None)])
    assert await other
    assert waits.waiting == 0


async def test_a_wait_is_bounded_by_its_timeout() -> None:
    waits = KeyWaiters(10, Counts(CATALOGUE))
    assert not await waits.wait("flights", "UA1", 0.01, here)
    assert waits.waiting == 0
    waits.changed([Change("flights", "UA1", ENTRY)])


async def test_the_number_of_waiters_is_limited() -> None:
    waits = KeyWaiters(1, Counts(CATALOGUE))
    first = asyncio.create_task(waits.wait("flights", "UA1", 10, here))
    await until(lambda: waits.waiting == 1)
    with pytest.raises(ProblemError) as refused:
        await waits.wait("flights", "UA2", 10, here)
    assert (refused.value.problem.status, refused.value.problem.retry_after) == (429, 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not await waits.wait("flights", "UA2", 0.01, here), "the limit is free again"


async def test_waiters_of_a_moved_key_are_woken() -> None:
    waits, is_here = KeyWaiters(10, Counts(CATALOGUE)), {"UA1": True, "UA2": True}
    one, other = (asyncio.create_task(waits.wait("flights", key, 60, lambda at=key: is_here[at])) for key in is_here)  # type: ignore[misc]
    await until(lambda: waits.waiting == 2)
    is_here["UA1"] = False
    assert await asyncio.wait_for(one, DEADLINE_S)
    assert not other.done()
    is_here["UA2"] = False
    assert await asyncio.wait_for(other, DEADLINE_S), "the check continues"
    again = asyncio.create_task(waits.wait("flights", "UA1", 60, lambda: is_here["UA1"]))
    assert await asyncio.wait_for(again, DEADLINE_S), "also for a request after all others have ended"
