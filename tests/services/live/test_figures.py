from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.live.figures import Latencies, Quantiles, Rate, nearest_rank


def test_a_rate_is_that_of_the_window() -> None:
    rate = Rate(10, now=100)
    for second in range(100, 130):
        rate.add(second, 5)
    assert rate.per_second(129) == 5
    assert rate.per_second(139) == 0
    assert rate.total == 150


def test_a_rate_of_a_short_time_is_not_too_small() -> None:
    rate = Rate(10, now=100)
    rate.add(101, 6)
    assert rate.per_second(102) == 3


def test_latencies_outside_of_the_window_do_not_count() -> None:
    latencies = Latencies(10)
    latencies.add(0, 9.0)
    latencies.add(5, 1.0)
    assert latencies.quantiles(9) == Quantiles(2, 1.0, 9.0)
    assert latencies.quantiles(12) == Quantiles(1, 1.0, 1.0)
    assert latencies.quantiles(20) is None


@given(st.lists(st.floats(0, 1e3), min_size=1), st.floats(0, 1))
def test_a_quantile_is_a_value_with_enough_values_below(values: list[float], probability: float) -> None:
    ordered = sorted(values)
    found = nearest_rank(ordered, probability)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= probability * len(ordered) - 1e-9


def test_the_95th_of_a_hundred() -> None:
    assert nearest_rank([float(value) for value in range(1, 101)], 0.95) == pytest.approx(95)
