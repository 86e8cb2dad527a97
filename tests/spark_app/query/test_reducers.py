"""Each reducer's SQL against its fold, and the laws of its merge, by the test kit; and that the kit sees wrong ones."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from typing_extensions import override

from contracts import (
    Bitmap,
    Collect,
    Count,
    Coverage,
    Distinct,
    DistinctApprox,
    Earliest,
    Histogram,
    Latest,
    Max,
    Mean,
    Min,
    Quantiles,
    Rate,
    Recent,
    Reducer,
    Series,
    Sum,
    TopK,
    ValueCount,
    Variance,
)
from contracts.testing.reducers import check_reducer
from tests.everything import Position, eighths, positions, texts, times

wholes = st.integers(-100, 200)
STATUSES = Literal["new", "old"]


@pytest.mark.parametrize(
    ("reducer", "source", "values"),
    [
        (Count(), datetime, times),
        (Count(of="speed"), float, eighths),
        (Rate(), datetime, times),
        (Rate(of="name"), str, texts),
        (Sum(), float, eighths),
        (Sum(), int, st.integers(-(1 << 63), (1 << 63) - 1)),
        (Min(), float, eighths),
        (Min(), str, texts),
        (Max(), datetime, times),
        (Max(), bool, st.booleans()),
        (Mean(), float, eighths),
        (Mean(), int, wholes),
        (Variance(), float, eighths),
        (Latest(), float, eighths),
        (Latest(), Position, positions),
        (Latest(), list[str], st.lists(texts, max_size=2)),
        (Earliest(), str, texts),
        (Earliest(), STATUSES, st.sampled_from(["new", "old"])),
        (Recent(3), str, texts),
        (Recent(2), Position, positions),
        (Collect(4), float, eighths),
        (Distinct(3), str, texts),
        (Distinct(4), bool, st.booleans()),
        (DistinctApprox(), str, texts),
        (DistinctApprox(), int, wholes),
        (Bitmap(130), int, wholes),
        (Histogram((-1.5, 0.0, 10.0)), float, eighths),
        (Quantiles((0.0, 0.5, 1.0), accuracy=10_000), float, eighths),
        (TopK(2, capacity=16), str, texts),
        (TopK(3), int, wholes),
        (TopK(2), bool, st.booleans()),
        (TopK(1), STATUSES, st.sampled_from(["new", "old"])),
    ],
    ids=lambda value: str(value) if isinstance(value, Reducer) else "",
)
def test_sql_and_fold_agree(spark: SparkSession, reducer: Reducer, source: Any, values: Any) -> None:
    check_reducer(spark, reducer, source | None, values)


@pytest.mark.parametrize(
    ("reducer", "source", "values"),
    [
        (Coverage(timedelta(milliseconds=70)), datetime, times),
        (Coverage(timedelta(milliseconds=15), of="x", duration=timedelta(milliseconds=700)), str, texts),
        (Coverage(timedelta(milliseconds=15), of="x", rate=3), list[int], st.lists(wholes, max_size=20)),
        (Coverage(timedelta(seconds=1), of="x", unit=timedelta(milliseconds=7)), int, st.integers(-99, 999)),
        (Coverage(timedelta(milliseconds=70), of="x", unit=timedelta(seconds=1)), float, st.floats(-1, 9)),
        (Series(3), list[int], st.lists(st.none() | wholes, max_size=7)),
        (Series(1.3, unit="mV"), list[float], st.lists(eighths, max_size=20)),
    ],
    ids=lambda value: str(value) if isinstance(value, Reducer) else "",
)
def test_sql_and_fold_agree_on_positions_in_a_window(
    spark: SparkSession, reducer: Reducer, source: Any, values: Any
) -> None:
    check_reducer(spark, reducer, source | None, values, window=timedelta(seconds=4.5))


@dataclass(frozen=True)
class Product(Sum):
    """The product of whole numbers, small enough not to overflow."""

    @override
    def merge(self, one: float, other: float) -> float:
        return one * other

    @override
    def present(self, partial: float | None) -> float:
        return 1 if partial is None else partial


class RightProduct(Product):
    """With SQL that multiplies."""

    @override
    def sql(self, x: str) -> str:
        return f"CAST(aggregate(collect_list({x}), 1L, (a, b) -> a * b) AS BIGINT)"


class FirstMerged(Latest):
    """Keeps what was merged first: the order of the merges decides."""

    @override
    def merge(self, one: Any, other: Any) -> Any:
        return one


class Middle(Mean):
    """The mean of two means, whatever they are the means of."""

    depends_on_order: ClassVar[bool] = True

    @override
    def merge(self, one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
        return 1, (one[1] / one[0] + other[1] / other[0]) / 2


class Untyped(Max):
    """Publishes a text, and declares a number."""

    @override
    def present(self, partial: Any) -> Any:
        return None if partial is None else str(partial)


class CountsNulls(Count):
    """Its SQL counts rows, not values."""

    @override
    def sql(self, x: str) -> str:
        return "count(1)"


def test_a_reducer_of_ones_own_that_is_right_passes(spark: SparkSession) -> None:
    check_reducer(spark, RightProduct(), int, st.integers(-3, 3))


@pytest.mark.parametrize(
    ("reducer", "message"),
    [
        (Product(), "SQL and fold differ"),
        (FirstMerged(), "merge is not commutative"),
        (Middle(), "merge is not associative"),
        (Untyped(), "present gives "),
        (CountsNulls(of="x"), "SQL and fold differ"),
    ],
    ids=str,
)
def test_the_kit_fails_a_wrong_reducer(spark: SparkSession, reducer: Reducer, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_reducer(spark, reducer, int | None, st.integers(-3, 3))


def test_a_sketch_is_compared_by_the_function_of_the_caller(spark: SparkSession) -> None:
    def alike(one: list[Any], other: list[Any]) -> bool:
        return len(one) == len(other)

    check_reducer(spark, Quantiles((0.5,), accuracy=1), int, st.integers(0, 1_000), same=alike)


def test_beyond_its_capacity_top_k_is_within_the_documented_bound(spark: SparkSession) -> None:
    reducer = TopK(5, of="x", capacity=24)
    frequent = {f"frequent {number}": 3_000 - 400 * number for number in range(5)}
    values = [value for value, count in frequent.items() for _ in range(count)]
    values += [f"rare {number}" for number in range(4_000)]
    table = spark.createDataFrame([(value,) for value in values], "x STRING").repartition(4)
    (row,) = table.selectExpr(f"{reducer.sql('x')} AS top").collect()
    error = 2.63 / reducer.capacity * len(values)
    counts = {item.value: item.count for item in (ValueCount[str](**item.asDict()) for item in row.top)}
    assert counts.keys() >= {value for value, count in frequent.items() if count > 2 * error}
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    for value, count in counts.items():
        assert 0 <= count - values.count(value) <= error
