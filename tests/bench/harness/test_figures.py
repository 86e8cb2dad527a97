from __future__ import annotations

import math

import pytest

from bench.harness.figures import largest_gap, median, percentile, percentiles, rate, within


def test_percentiles_of_a_thousand() -> None:
    ordered = [index / 1000 for index in range(1000)]
    assert percentile(ordered, 0.5) == 0.5
    assert percentile(ordered, 0.99) == 0.99
    assert percentile(ordered, 1.0) == 0.999


def test_percentiles_are_in_milliseconds_and_need_no_order() -> None:
    milliseconds = percentiles([0.003, 0.001, 0.002])
    assert milliseconds["p50_ms"] == pytest.approx(2)
    assert milliseconds["max_ms"] == pytest.approx(3)


def test_one_slow_event_of_a_thousand_shows_where_it_should() -> None:
    milliseconds = percentiles([0.001] * 999 + [1.0])
    assert milliseconds["p99_ms"] == pytest.approx(1)
    assert milliseconds["p999_ms"] == pytest.approx(1000)


def test_of_nothing_there_are_no_figures() -> None:
    assert math.isnan(percentile([], 0.5))
    assert math.isnan(largest_gap([1.0]))
    assert math.isnan(median([]))


def test_the_largest_gap() -> None:
    assert largest_gap([1.0, 1.5, 4.0, 4.0, 5.0]) == 2.5


def test_the_rate_excludes_the_first_part() -> None:
    slow_then_fast = [0.0, 10.0, 10.5, 11.0, 11.5, 12.0]
    assert rate(slow_then_fast, skipped=2) == 2.0


def test_the_median() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5


def test_a_boundary_at_the_end_belongs_to_the_next_part() -> None:
    assert within([1.0, 2.0, 3.0], begin=1.0, end=3.0) == 2
