from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.ingest.freshness import FreshnessTracker, has_gap
from services.query.ingest.tombstones import DAY_MS, TombstoneRetention
from services.query.store import StatePartition
from tests.services.query.in_memory import ScratchStore

PARTITION = StatePartition("flights", 0)


@pytest.fixture
def store() -> ScratchStore:
    return ScratchStore()


@pytest.fixture
def freshness(store: ScratchStore) -> FreshnessTracker:
    return FreshnessTracker({"flights": store}, TombstoneRetention({"flights": DAY_MS}, lambda: 3 * DAY_MS))


def test_the_store_had_caught_up_at_the_request_whose_end_offset_is_reached(
    store: ScratchStore, freshness: FreshnessTracker
) -> None:
    freshness.start(PARTITION, 3)
    freshness.set_end_offsets({PARTITION: 10}, 5, {PARTITION: 3})
    freshness.set_end_offsets({PARTITION: 20}, 7, {PARTITION: 9})
    assert store.caught_up_at(0) is None, "it has not read all records"
    freshness.reached({PARTITION: 10})
    assert store.caught_up_at(0) == 5, "the earlier request stays"
    freshness.reached({PARTITION: 20})
    assert store.caught_up_at(0) == 5, "no request came since"
    freshness.set_end_offsets({PARTITION: 20}, 9, {PARTITION: 20})
    assert store.caught_up_at(0) == 9


def test_an_end_offset_requested_before_a_restart_is_ignored(store: ScratchStore, freshness: FreshnessTracker) -> None:
    freshness.start(PARTITION, 3)
    freshness.set_end_offsets({PARTITION: 10}, 5, {PARTITION: 3})
    assert freshness.may_miss_tombstone(PARTITION, 3, [3])
    freshness.start(PARTITION, None)
    assert store.caught_up_at(0) == 3 * DAY_MS
    freshness.reached({PARTITION: 10})
    assert store.caught_up_at(0) == 3 * DAY_MS
    assert not freshness.may_miss_tombstone(PARTITION, None, [3])


def test_a_gap_in_the_offsets_may_be_a_removed_tombstone(store: ScratchStore, freshness: FreshnessTracker) -> None:
    freshness.start(PARTITION, 3)
    store.mark_caught_up({0: DAY_MS})
    assert not freshness.may_miss_tombstone(PARTITION, 3, [3, 4, 5]), "however long it was down"
    assert freshness.may_miss_tombstone(PARTITION, 3, [4]), "a gap before the first offset"
    assert freshness.may_miss_tombstone(PARTITION, 3, [3, 5]), "a gap between two offsets"
    store.mark_caught_up({0: 2 * DAY_MS})
    assert not freshness.may_miss_tombstone(PARTITION, 3, [5, 9]), "no tombstone is removed within a day"


@given(offsets=st.sets(st.integers(0, 20), min_size=1), before=st.integers(0, 5))
def test_a_gap_is_where_offsets_are_missing(offsets: set[int], before: int) -> None:
    position = min(offsets) - before
    assert has_gap(position, sorted(offsets)) == (offsets != set(range(position, max(offsets) + 1)))
    assert not has_gap(max(offsets) + 1, [max(offsets)]), "records that are read again"
