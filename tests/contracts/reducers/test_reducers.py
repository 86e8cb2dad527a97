"""Reducers as they are declared, and the published values of those whose definition is a choice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Literal

import pytest

from contracts import (
    Count,
    DeclarationError,
    Enriched,
    Histogram,
    Latest,
    Rate,
    Recent,
    Reducer,
    TopK,
    ValueCount,
    field,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def published(reducer: Reducer, *values: tuple[Any, float]) -> Any:
    """Return the published value of values, each at a number of seconds."""
    partials = [reducer.lift(value, NOW + timedelta(seconds=at), NOW) for value, at in values]
    return reducer.present(reduce(reducer.merge, partials) if partials else None)


def test_a_rate_is_that_between_the_first_and_the_last_event() -> None:
    assert published(Rate(), ("a", 10), ("b", 0), ("c", 5), ("d", 5)) == 0.3
    assert published(Rate(), ("a", 0), ("b", 0.000001)) == 1_000_000
    assert published(Rate(), ("a", 0), ("b", 0)) is None
    assert published(Rate()) is None


def test_a_histogram_has_a_count_for_each_range_also_without_values() -> None:
    assert published(Histogram((1.0, 2.0))) == [0, 0, 0]
    assert published(Histogram((1.0, 2.0)), (0.5, 0), (1.0, 0), (2.0, 0), (3.0, 0)) == [1, 1, 2]


def test_a_histogram_compares_whole_numbers_as_the_job_does() -> None:
    assert published(Histogram((2.0**60,)), (2**60 - 1, 0)) == [0, 1], "the nearest double is the bound"


def test_the_most_frequent_values_come_first_and_of_equally_frequent_ones_the_smallest() -> None:
    values = [(value, 0.0) for value in "cabbcz"]
    assert published(TopK(3), *values) == [
        {"value": "b", "count": 2},
        {"value": "c", "count": 2},
        {"value": "a", "count": 1},
    ]
    assert published(TopK(3)) == []


def test_top_k_gives_values_of_the_type_of_the_field() -> None:
    status = Literal["new", "old"]
    assert TopK(3).gives(int | None) == list[ValueCount[int]]
    assert TopK(3).gives(status) == list[ValueCount[status]]
    with pytest.raises(TypeError, match="takes a field of type str, int, bool, not float"):
        TopK(3).gives(float)


@pytest.mark.parametrize(
    ("reducer", "spelled"),
    [
        (Latest(), "Latest()"),
        (Count(), "Count()"),
        (Count(of="speed", where=field("speed") > 1), "Count(where=field('speed') > 1, of='speed')"),
        (Recent(3), "Recent(n=3)"),
        (TopK(2, capacity=50), "TopK(k=2, capacity=50)"),
    ],
)
def test_a_reducer_reads_as_it_is_declared(reducer: Reducer, spelled: str) -> None:
    assert str(reducer) == spelled


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: TopK(0), "Write a number from 1 to 96"),
        (lambda: TopK(5, capacity=4), "Write a number from 1 to 4"),
        (lambda: TopK(1, capacity=10_001), "Write a number from 1 to 10000"),
        (lambda: Enriched(where=field("x") == 1), "Write Enriched"),
    ],
)
def test_a_reducer_that_cannot_be_is_refused(declare: Callable[[], Reducer], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()
