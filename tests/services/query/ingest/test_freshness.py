from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.ingest.freshness import FreshnessTracker, has_gap
from services.query.ingest.tombstones import DAY_MS, TombstoneRetention
from services.query.store import StatePartition
from tests.services.query.in_memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITION = StatePartition("flights", 0)


class Fresh(MemoryStore):
    """A store that notes when all was there."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, int] = {}

    def caught_up_at(self, partition: int) -> int | None:
        return self.times.get(partition)

    def mark_caught_up(self, times: Mapping[int, int]) -> None:
        self.times.update(times)


@pytest.fixture
def store() -> Fresh:
    return Fresh()


@pytest.fixture
def freshness(store: Fresh) -> FreshnessTracker:
    return FreshnessTracker({"flights": store}, TombstoneRetention({"flights": DAY_MS}, lambda: 3 * DAY_MS))


def test_all_was_here_at_the_question_whose_end_is_reached(store: Fresh, freshness: FreshnessTracker) -> None:
    freshness.start(PARTITION, 3)
    freshness.set_end_offsets({PARTITION: 10}, 5, {PARTITION: 3})
    freshness.set_end_offsets({PARTITION: 20}, 7, {PARTITION: 9})
    assert store.times == {}, "what it has read is not all"
    freshness.reached({PARTITION: 10})
    assert store.times == {0: 5}, "the earlier question goes on"
    freshness.reached({PARTITION: 20})
    assert store.times == {0: 5}, "no request came since"
    freshness.set_end_offsets({PARTITION: 20}, 9, {PARTITION: 20})
    assert store.times == {0: 9}


def test_an_answer_for_who_began_anew_meanwhile_says_nothing(store: Fresh, freshness: FreshnessTracker) -> None:
    freshness.start(PARTITION, 3)
    freshness.set_end_offsets({PARTITION: 10}, 5, {PARTITION: 3})
    assert freshness.may_miss_tombstone(PARTITION, 3, [3])
    freshness.start(PARTITION, None)
    assert store.times == {0: 3 * DAY_MS}
    freshness.reached({PARTITION: 10})
    assert store.times == {0: 3 * DAY_MS}
    assert not freshness.may_miss_tombstone(PARTITION, None, [3])


def test_a_removal_leaves_a_hole(store: Fresh, freshness: FreshnessTracker) -> None:
    freshness.start(PARTITION, 3)
    store.times[0] = DAY_MS
    assert not freshness.may_miss_tombstone(PARTITION, 3, [3, 4, 5]), "however long it was away"
    assert freshness.may_miss_tombstone(PARTITION, 3, [4]), "before the first"
    assert freshness.may_miss_tombstone(PARTITION, 3, [3, 5]), "between two"
    store.times[0] = 2 * DAY_MS
    assert not freshness.may_miss_tombstone(PARTITION, 3, [5, 9]), "what went within a day was no removal"


@given(offsets=st.sets(st.integers(0, 20), min_size=1), before=st.integers(0, 5))
def test_holes_are_where_offsets_are_missing(offsets: set[int], before: int) -> None:
    position = min(offsets) - before
    assert has_gap(position, sorted(offsets)) == (offsets != set(range(position, max(offsets) + 1)))
    assert not has_gap(max(offsets) + 1, [max(offsets)]), "what is read again"
