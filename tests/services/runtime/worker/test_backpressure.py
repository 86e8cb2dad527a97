"""The levels at which reading stops and resumes."""

from __future__ import annotations

import pytest

from services.runtime.worker.backpressure import Backpressure


async def test_reading_stops_at_the_high_mark_and_goes_on_at_the_low_one() -> None:
    backpressure = Backpressure(10, 1000, 1000)
    backpressure.add(10, count=9)
    assert await backpressure.wait_for_room(0)
    backpressure.add(1)
    assert not await backpressure.wait_for_room(0)
    backpressure.release(1, count=4)
    assert not await backpressure.wait_for_room(0), "not before half of it is gone"
    backpressure.release(10)
    assert await backpressure.wait_for_room(0)


async def test_bytes_count_as_well() -> None:
    backpressure = Backpressure(10, 1000, 1000)
    backpressure.add(1000)
    assert not await backpressure.wait_for_room(0)
    backpressure.release(499, count=0)
    assert not await backpressure.wait_for_room(0)
    backpressure.release(1, count=0)
    assert await backpressure.wait_for_room(0)


async def test_deferred_requests_have_their_own_limit_and_take_no_room() -> None:
    backpressure = Backpressure(10, 1000, 4)
    backpressure.add_deferred(3)
    assert await backpressure.wait_for_room(0)
    backpressure.add_deferred(1)
    assert not await backpressure.wait_for_room(0)
    backpressure.add_deferred(-1)
    assert not await backpressure.wait_for_room(0)
    backpressure.add_deferred(-1)
    assert await backpressure.wait_for_room(0)


@pytest.mark.parametrize(("size", "count"), [(0, 2), (250, 1)])
def test_it_is_high_at_a_quarter(size: int, count: int) -> None:
    backpressure = Backpressure(8, 1000, 4)
    backpressure.add(size // 2, count // 2)
    assert not backpressure.is_high
    backpressure.add(size - size // 2, count - count // 2)
    assert backpressure.is_high
