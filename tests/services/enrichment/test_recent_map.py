"""The map keeps recent entries and stays bounded."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.enrichment.recent_map import RecentMap

AGE = timedelta(seconds=10)


@given(size=st.integers(1, 5), steps=st.lists(st.tuples(st.integers(0, 12), st.floats(0, 6)), max_size=60))
def test_young_entries_are_kept_and_the_size_is_bounded(size: int, steps: list[tuple[int, float]]) -> None:
    now = 0.0
    memory: RecentMap[int, int] = RecentMap(size, AGE, lambda: now)
    written: list[tuple[int, int, float]] = []
    for value, (key, wait) in enumerate(steps):
        now += wait
        memory.put(key, value)
        written.append((key, value, now))
        assert len(memory) <= 2 * size
        latest = {key: (value, at) for key, value, at in written[-size:]}
        for known, (expected, at) in latest.items():
            if now - at <= AGE.total_seconds():
                assert memory.get(known) == expected


def test_forgotten_at_once_and_after_its_time() -> None:
    now = 0.0
    memory: RecentMap[str, int] = RecentMap(10, AGE, lambda: now)
    memory.put("a", 1)
    memory.forget("a")
    assert memory.get("a") is None
    memory.put("b", 1)
    for key in ("c", "d"):
        now += 11
        memory.put(key, 1)
    assert memory.get("b") is None
