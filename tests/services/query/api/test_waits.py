"""Requests that wait: bounded in number and in time, and forgotten when they end."""

from __future__ import annotations

import asyncio

import pytest

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from services.query.api.problems import ProblemError
from services.query.api.waits import Waits
from services.query.entry import Change, Entry
from tests.services.query.in_memory import until

ENTRY = Entry(life=0, version=1, event_time=0, partition=0, offset=0, value=b"{}")


async def test_only_who_waits_for_the_key_is_woken() -> None:
    waits = Waits(10, Counts(CATALOGUE))
    one, other = (asyncio.create_task(waits.change("flights", key, 10)) for key in ("UA1", "UA2"))
    await until(lambda: waits.waiting == 2)
    waits.changed([Change("planes", "UA1", ENTRY), Change("flights", "UA1", ENTRY), Change("flights", "UA1", None)])
    assert await one
    assert not other.done()
    waits.changed([Change("flights", "UA2", None)])
    assert await other
    assert waits.waiting == 0


async def test_nobody_waits_longer_than_said() -> None:
    waits = Waits(10, Counts(CATALOGUE))
    assert not await waits.change("flights", "UA1", 0.01)
    assert waits.waiting == 0
    waits.changed([Change("flights", "UA1", ENTRY)])


async def test_so_many_may_wait() -> None:
    waits = Waits(1, Counts(CATALOGUE))
    first = asyncio.create_task(waits.change("flights", "UA1", 10))
    await until(lambda: waits.waiting == 1)
    with pytest.raises(ProblemError) as refused:
        await waits.change("flights", "UA2", 10)
    assert (refused.value.problem.status, refused.value.problem.retry_after) == (429, 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not await waits.change("flights", "UA2", 0.01), "there is room again"
