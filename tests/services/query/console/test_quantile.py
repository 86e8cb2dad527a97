from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.console.quantile import quantile

BOUNDS = (0.01, 0.1, 1.0, float("inf"))


def counted(values: list[float]) -> dict[float, float]:
    return {bound: float(sum(value <= bound for value in values)) for bound in BOUNDS}


@given(st.lists(st.floats(0, 0.99), min_size=1), st.floats(0.01, 1.0))
def test_the_quantile_is_in_the_bucket_of_the_exact_one(values: list[float], share: float) -> None:
    ordered = sorted(values)
    rank = next(i for i in range(1, len(ordered) + 1) if i >= share * len(ordered) - 1e-9)
    bucket = bisect_left(BOUNDS, ordered[rank - 1])
    found = quantile(share, counted(values))
    assert found is not None
    assert ((0.0, *BOUNDS)[bucket]) - 1e-9 <= found <= BOUNDS[bucket] + 1e-9


def test_without_values_there_is_no_quantile() -> None:
    assert quantile(0.5, {}) is None
    assert quantile(0.5, counted([])) is None


def test_beyond_the_last_bound_the_quantile_is_that_bound() -> None:
    assert quantile(0.5, counted([30.0])) == 1.0


def test_values_are_assumed_evenly_spread() -> None:
    assert quantile(0.5, counted([0.05, 0.05])) == pytest.approx(0.055)
