"""Reducers of numbers: counts, sums, extremes, moments, histograms and quantiles."""

import bisect
import math
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, ClassVar

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.reducers.base import NUMBERS, ORDERED, Reducer, needs_type

LONG = 1 << 64


@dataclass(frozen=True)
class Count(Reducer):
    """The number of events; with `of`, of those in which this field has a value."""

    of: str | None = "ts"

    @override
    def gives(self, source: Any) -> Any:
        return int

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> int:
        return 1

    @override
    def merge(self, one: int, other: int) -> int:
        return one + other

    @override
    def present(self, partial: int | None) -> int:
        return partial or 0

    @override
    def sql(self, x: str) -> str:
        return f"count({x})"


@dataclass(frozen=True)
class Sum(Reducer):
    """The sum; 0 when there was no value. Whole numbers wrap at 64 bits, as Spark's and Java's do.

    The last digits of a sum of floats depend on the order: an enrichment that needs one rounds it with Quantize.
    """

    depends_on_order: ClassVar[bool] = True
    of: str | None = None

    @override
    def gives(self, source: Any) -> Any:
        return needs_type(source, NUMBERS)

    @override
    def lift(self, value: float, ts: datetime, start: datetime) -> float:
        return value

    @override
    def merge(self, one: float, other: float) -> float:
        total = one + other
        return (total + LONG // 2) % LONG - LONG // 2 if isinstance(total, int) else total

    @override
    def present(self, partial: float | None) -> float:
        return 0 if partial is None else partial

    @override
    def sql(self, x: str) -> str:
        return f"coalesce(sum({x}), 0)"


@dataclass(frozen=True)
class Min(Reducer):
    """The smallest value."""

    of: str | None = None

    @override
    def gives(self, source: Any) -> Any:
        return needs_type(source, ORDERED) | None

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> Any:
        return value

    @override
    def merge(self, one: Any, other: Any) -> Any:
        return min(one, other)

    @override
    def present(self, partial: Any | None) -> Any:
        return partial

    @override
    def sql(self, x: str) -> str:
        return f"min({x})"


@dataclass(frozen=True)
class Max(Min):
    """The largest value."""

    @override
    def merge(self, one: Any, other: Any) -> Any:
        return max(one, other)

    @override
    def sql(self, x: str) -> str:
        return f"max({x})"


@dataclass(frozen=True)
class Mean(Reducer):
    """The arithmetic mean. Its last digits depend on the order: an enrichment that needs it rounds it with Quantize."""

    depends_on_order: ClassVar[bool] = True
    of: str | None = None

    @override
    def gives(self, source: Any) -> Any:
        needs_type(source, NUMBERS)
        return float | None

    @override
    def lift(self, value: float, ts: datetime, start: datetime) -> tuple[int, float]:
        return 1, float(value)

    @override
    def merge(self, one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
        return one[0] + other[0], one[1] + other[1]

    @override
    def present(self, partial: tuple[int, float] | None) -> float | None:
        return None if partial is None else partial[1] / partial[0]

    @override
    def sql(self, x: str) -> str:
        return f"avg({x})"


@dataclass(frozen=True)
class Variance(Reducer):
    """The sample variance (n - 1); none below two values. Merged as Chan, Golub and LeVeque (1979) do.

    Its last digits depend on the order: an enrichment that needs it rounds it with Quantize.
    """

    depends_on_order: ClassVar[bool] = True
    of: str | None = None

    @override
    def gives(self, source: Any) -> Any:
        needs_type(source, NUMBERS)
        return float | None

    @override
    def lift(self, value: float, ts: datetime, start: datetime) -> tuple[int, float, float]:
        return 1, float(value), 0.0

    @override
    def merge(self, one: tuple[int, float, float], other: tuple[int, float, float]) -> tuple[int, float, float]:
        n, delta = one[0] + other[0], other[1] - one[1]
        mean = one[1] + delta * other[0] / n
        return n, mean, one[2] + other[2] + delta * delta * one[0] * other[0] / n

    @override
    def present(self, partial: tuple[int, float, float] | None) -> float | None:
        return None if partial is None or partial[0] == 1 else partial[2] / (partial[0] - 1)

    @override
    def sql(self, x: str) -> str:
        return f"CASE WHEN count({x}) > 1 THEN var_samp({x}) END"


@dataclass(frozen=True)
class Histogram(Reducer):
    """The number of values below the first bound, between neighbours, and from the last on: len(bounds) + 1 counts."""

    bounds: tuple[float, ...]
    of: str | None = None

    def __post_init__(self) -> None:
        if not self.bounds or list(self.bounds) != sorted(set(self.bounds)) or not all(map(math.isfinite, self.bounds)):
            raise DeclarationError(
                "Histogram", f"got bounds {self.bounds}", "Write growing numbers, such as (1.0, 5.0)"
            )

    @override
    def gives(self, source: Any) -> Any:
        needs_type(source, NUMBERS)
        return list[int]

    @override
    def lift(self, value: float, ts: datetime, start: datetime) -> tuple[int, ...]:
        place = bisect.bisect_right(self.bounds, float(value))  # as Spark compares a BIGINT with a DOUBLE
        return tuple(int(i == place) for i in range(len(self.bounds) + 1))

    @override
    def merge(self, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(a + b for a, b in zip(one, other, strict=True))

    @override
    def present(self, partial: tuple[int, ...] | None) -> list[int]:
        return list(partial or [0] * (len(self.bounds) + 1))

    @override
    def sql(self, x: str) -> str:
        edges = [None, *(f"double('{bound!r}')" for bound in self.bounds), None]
        return f"array({', '.join(_between(x, low, high) for low, high in pairwise(edges))})"


def _between(x: str, low: str | None, high: str | None) -> str:
    conditions = [f"{x} >= {low}" if low else "", f"{x} < {high}" if high else ""]
    return f"count_if({' AND '.join(filter(None, conditions))})"


@dataclass(frozen=True)
class Quantiles(Reducer):
    """Values at these probabilities, within a rank of 1/accuracy (Greenwald and Khanna 2001).

    The plain fold keeps all values and is exact. On the smaller side where a probability falls between two values.
    The job's sketch depends on the order, and a list cannot be rounded: no enrichment can need it.
    """

    depends_on_order: ClassVar[bool] = True
    probabilities: tuple[float, ...]
    of: str | None = None
    accuracy: int = 100

    def __post_init__(self) -> None:
        if not self.probabilities or not all(0 <= p <= 1 for p in self.probabilities):
            raise DeclarationError("Quantiles", f"got {self.probabilities}", "Write probabilities, such as (0.5, 0.99)")

    @override
    def gives(self, source: Any) -> Any:
        needs_type(source, NUMBERS)
        return list[float]

    @override
    def lift(self, value: float, ts: datetime, start: datetime) -> tuple[float, ...]:
        return (float(value),)

    @override
    def merge(self, one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(one + other))

    @override
    def present(self, partial: tuple[float, ...] | None) -> list[float]:
        if not partial:
            return []
        return [partial[max(0, math.ceil(p * len(partial)) - 1)] for p in self.probabilities]

    @override
    def sql(self, x: str) -> str:
        wanted = ", ".join(f"double('{p!r}')" for p in self.probabilities)
        approx = f"percentile_approx(CAST({x} AS DOUBLE), array({wanted}), {self.accuracy})"
        return f"coalesce({approx}, CAST(array() AS ARRAY<DOUBLE>))"
