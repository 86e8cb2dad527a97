from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.ingest.freshness import Freshness, missing
from services.query.ingest.ingestion import Part
from services.query.ingest.tombstones import DAY_MS, Removals
from tests.services.query.in_memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

PART = Part("flights", 0)


class Fresh(MemoryStore):
    """A store that notes when all was there."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, int] = {}

    def fresh(self, partition: int) -> int | None:
        return self.times.get(partition)

    def freshen(self, times: Mapping[int, int]) -> None:
        self.times.update(times)


@pytest.fixture
def store() -> Fresh:
    return Fresh()


@pytest.fixture
def freshness(store: Fresh) -> Freshness:
    return Freshness({"flights": store}, Removals({"flights": DAY_MS}, lambda: 3 * DAY_MS))


def test_all_was_here_at_the_question_whose_end_is_reached(store: Fresh, freshness: Freshness) -> None:
    freshness.begin(PART, 3)
    freshness.ask({PART: 10}, 5, {PART: 3})
    freshness.ask({PART: 20}, 7, {PART: 9})
    assert store.times == {}, "what it has read is not all"
    freshness.reached({PART: 10})
    assert store.times == {0: 5}, "the earlier question goes on"
    freshness.reached({PART: 20})
    assert store.times == {0: 5}, "nobody has asked since"
    freshness.ask({PART: 20}, 9, {PART: 20})
    assert store.times == {0: 9}


def test_an_answer_for_who_began_anew_meanwhile_says_nothing(store: Fresh, freshness: Freshness) -> None:
    freshness.begin(PART, 3)
    freshness.ask({PART: 10}, 5, {PART: 3})
    assert freshness.lost(PART, 3, [3])
    freshness.begin(PART, None)
    assert store.times == {0: 3 * DAY_MS}
    freshness.reached({PART: 10})
    assert store.times == {0: 3 * DAY_MS}
    assert not freshness.lost(PART, None, [3])


def test_a_removal_leaves_a_hole(store: Fresh, freshness: Freshness) -> None:
    freshness.begin(PART, 3)
    store.times[0] = DAY_MS
    assert not freshness.lost(PART, 3, [3, 4, 5]), "however long it was away"
    assert freshness.lost(PART, 3, [4]), "before the first"
    assert freshness.lost(PART, 3, [3, 5]), "between two"
    store.times[0] = 2 * DAY_MS
    assert not freshness.lost(PART, 3, [5, 9]), "what went within a day was no removal"


@given(offsets=st.sets(st.integers(0, 20), min_size=1), before=st.integers(0, 5))
def test_holes_are_where_offsets_are_missing(offsets: set[int], before: int) -> None:
    position = min(offsets) - before
    assert missing(position, sorted(offsets)) == (offsets != set(range(position, max(offsets) + 1)))
    assert not missing(max(offsets) + 1, [max(offsets)]), "what is read again"
