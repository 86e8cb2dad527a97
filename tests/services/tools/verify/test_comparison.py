"""Differences between two stores, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.wire import Snapshot
from services.tools.verify.comparison import Stored, StoredSnapshots, compare, different_fields, snapshots_of

START = datetime(2026, 5, 1, 8, tzinfo=UTC)
LATER = START + timedelta(hours=1)


def snapshot(key: str = "k", version: int = 1, epoch: int = 1, start: datetime = START, **state: Any) -> Snapshot:
    return Snapshot(device_id=key, first_seen=start, epoch=epoch, version=version, as_of=start, state=state)


def is_live(start: datetime) -> bool:
    return start >= START


def problems(first: list[Snapshot], second: list[Snapshot]) -> list[str]:
    """The problems of the store that was read later."""
    comparison = compare(snapshots_of("one", first), snapshots_of("other", second), is_live)
    return [difference.problem for difference in comparison.differences]


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ([snapshot(n=1)], [snapshot(n=2)], "state.n of the same version"),
        ([snapshot(version=2)], [snapshot(version=1)], "the other is older"),
        ([snapshot(epoch=2)], [snapshot(version=9)], "the other is older"),
        ([snapshot()], [], "the other lacks it"),
    ],
)
def test_a_place_that_was_read_later_is_at_least_as_new(
    first: list[Snapshot], second: list[Snapshot], problem: str
) -> None:
    assert problems(first, second) == [problem]


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ([snapshot(x=0.1 + 0.2)], [snapshot(x=0.3)], "equal"),
        ([snapshot(version=1)], [snapshot(version=2, n=2)], "newer"),
        ([], [snapshot()], "newer"),
        ([snapshot(start=START - timedelta(hours=1))], [], "expired"),
        ([], [snapshot(start=START - timedelta(hours=1))], "expired"),
    ],
)
def test_a_state_that_moved_on_or_expired_is_no_difference(
    first: list[Snapshot], second: list[Snapshot], count: str
) -> None:
    comparison = compare(snapshots_of("one", first), snapshots_of("other", second), is_live)
    assert getattr(comparison, count) == comparison.equal + comparison.newer + comparison.expired == 1
    assert comparison.differences == []


@pytest.mark.parametrize("first", [[], [snapshot(version=1)]])
def test_a_checkpoint_has_all_snapshots_published_before_its_commit(first: list[Snapshot]) -> None:
    published = StoredSnapshots("topic", {("k", START): Stored(snapshot(version=2), written=START)})
    before, after = (
        compare(snapshots_of("checkpoint", first), published, is_live, START + timedelta(seconds=seconds))
        for seconds in (-1, 1)
    )
    assert before.newer == 1
    problem = f"the checkpoint {'is older' if first else 'lacks it'}"
    assert [difference.problem for difference in after.differences] == [problem]


def test_a_key_that_the_query_service_reports_as_expired_is_not_missing() -> None:
    comparison = compare(snapshots_of("topic", [snapshot()]), snapshots_of("query", [], frozenset("k")), is_live)
    assert (comparison.expired, comparison.differences) == (1, [])


def test_the_newest_window_of_a_key_is_compared_where_only_that_is_stored() -> None:
    older, newer = snapshot(version=5), snapshot(start=LATER)
    topic, query = snapshots_of("topic", [older, newer]).newest(), snapshots_of("query", [older]).newest()
    assert [difference.problem for difference in compare(topic, query, is_live).differences] == ["the query is older"]
    assert compare(query, topic, is_live).newer == 1


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(DOCUMENTS)
def test_a_document_does_not_differ_from_itself(document: Any) -> None:
    assert list(different_fields(document, document)) == []


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(), min_size=1), st.data())
def test_each_changed_field_is_named(document: dict[str, int], data: st.DataObject) -> None:
    changed = data.draw(st.sets(st.sampled_from(sorted(document))))
    other = {name: value + 1 if name in changed else value for name, value in document.items()}
    assert list(different_fields(document, other)) == sorted(changed)
