"""The contiguous prefix, against a naive model."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.worker.offsets import Offsets

MILLION = 1_000_000


def naive(work: dict[int, int]) -> int | None:
    """The first unfinished offset, or the one after the last."""
    for offset, parts in work.items():
        if parts:
            return offset
    return max(work) + 1 if work else None


@given(gaps=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=30), data=st.data())
def test_position_is_the_first_unfinished(gaps: list[tuple[int, int]], data: st.DataObject) -> None:
    offsets, work, at = Offsets(), dict[int, int](), 0
    for gap, parts in gaps:
        at += gap
        offsets.track(at, parts)
        work[at] = parts
        for _ in range(data.draw(st.integers(0, 3))):
            if open_ones := [offset for offset, left in work.items() if left]:
                done = data.draw(st.sampled_from(open_ones))
                offsets.finish(done)
                work[done] -= 1
            assert offsets.position == naive(work)
            assert offsets.span == max(work) + 1 - (naive(work) or 0)
    assert offsets.position == naive(work)


def test_parts_are_added_to_and_removed_from_an_offset() -> None:
    offsets = Offsets()
    offsets.track(7, 2)
    assert not offsets.add_parts(7, 1)
    assert [offsets.finish(7) for _ in range(3)] == [False, False, True]
    offsets.track(8, 2)
    assert offsets.add_parts(8, -2)
    assert offsets.position == 9


def test_an_offset_that_goes_back_is_rejected() -> None:
    offsets = Offsets()
    offsets.track(7, 0)
    assert offsets.is_behind(7)
    with pytest.raises(ValueError, match="needs a new state"):
        offsets.track(7, 1)


def test_a_million_completions_behind_one_slow_request() -> None:
    offsets = Offsets()
    began = time.process_time()
    for offset in range(MILLION):
        offsets.track(offset, 1)
    for offset in range(1, MILLION):
        offsets.finish(offset)
        if offset % 100 == 0:
            assert offsets.position == 0
    offsets.finish(0)
    assert offsets.position == MILLION
    assert time.process_time() - began < 10, "some operation is not O(1)"


def test_a_million_completions_in_the_order_of_reading() -> None:
    offsets = Offsets()
    began = time.process_time()
    for offset in range(MILLION):
        offsets.track(offset, 1)
    for offset in range(MILLION):
        assert offsets.position == offset
        offsets.finish(offset)
    assert time.process_time() - began < 10, "some operation is not O(1)"
