"""The buckets of windows: those in use at one time fit into the slots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.store.buckets import SLOTS, TimeBuckets


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 1000))
def test_all_windows_that_are_stored_at_one_time_have_slots_of_their_own(
    remembered: int, lateness: int, watermark: int
) -> None:
    buckets = TimeBuckets(remembered, remembered, lateness=lateness)
    newest = watermark + lateness
    stored = {buckets.of(start) for start in range(watermark - remembered, newest + 1)}
    assert min(stored) >= buckets.oldest(watermark)
    assert len(stored) <= SLOTS
