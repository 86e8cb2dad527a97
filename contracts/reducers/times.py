"""Reducers by the event's time: the latest, the earliest, the last or first few, and the rate."""

import heapq
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from typing_extensions import override

from contracts.reducers.base import Reducer, needs_positive
from contracts.types.columns import is_model, sql_type, without_none
from contracts.types.quantize import MICROSECOND

MOST_KEPT = 10_000
"""The maximum number of values of one key in a list."""


@dataclass(frozen=True)
class Latest(Reducer):
    """The value with the largest `ts`; of values with the same `ts` the largest, so that order never decides."""

    of: str | None = None

    @override
    def gives(self, source: Any) -> Any:
        return comparable(source) | None

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> tuple[datetime, Any, Any]:
        return ts, order(value), value

    @override
    def merge(self, one: tuple[datetime, Any, Any], other: tuple[datetime, Any, Any]) -> tuple[datetime, Any, Any]:
        return max(one, other, key=lambda partial: partial[:2])

    @override
    def present(self, partial: tuple[datetime, Any, Any] | None) -> Any:
        return None if partial is None else partial[2]

    @override
    def sql(self, x: str) -> str:
        return f"max({stamped(x)}).x"


@dataclass(frozen=True)
class Earliest(Latest):
    """The value with the smallest `ts`; of values with the same `ts` the smallest."""

    @override
    def merge(self, one: tuple[datetime, Any, Any], other: tuple[datetime, Any, Any]) -> tuple[datetime, Any, Any]:
        return min(one, other, key=lambda partial: partial[:2])

    @override
    def sql(self, x: str) -> str:
        return f"min({stamped(x)}).x"


@dataclass(frozen=True)
class Recent(Reducer):
    """The last `n` values, latest first, ordered as Latest orders."""

    n: int
    of: str | None = None

    def __post_init__(self) -> None:
        needs_positive(type(self).__name__, self.n, MOST_KEPT)

    @override
    def gives(self, source: Any) -> Any:
        return list[comparable(source)]  # type: ignore[misc]  # the element's type is known at run time only

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> list[tuple[datetime, Any, Any]]:
        return [(ts, order(value), value)]

    @override
    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        return heapq.nlargest(self.n, one + other, key=lambda partial: partial[:2])

    @override
    def present(self, partial: list[Any] | None) -> list[Any]:
        return [value for _, _, value in partial or []]

    @override
    def sql(self, x: str) -> str:
        return f"coalesce(max_by({x}, {stamped(x)}, {self.n}), array())"


@dataclass(frozen=True)
class Collect(Recent):
    """Every value in the order of `ts`, up to the first `n`."""

    @override
    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        return heapq.nsmallest(self.n, one + other, key=lambda partial: partial[:2])

    @override
    def sql(self, x: str) -> str:
        return f"coalesce(min_by({x}, {stamped(x)}, {self.n}), array())"


@dataclass(frozen=True)
class Rate(Reducer):
    """Events per second between the first and the last of them by `ts`: (n - 1) / (last - first).

    None until there are two times. With `of`, the rate of the events in which this field has a value. It is the rate
    while events came, whatever the window's size; the mean rate of a whole window is Count divided by its size.
    """

    of: str | None = "ts"

    @override
    def gives(self, source: Any) -> Any:
        return float | None

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> tuple[int, datetime, datetime]:
        return 1, ts, ts

    @override
    def merge(
        self, one: tuple[int, datetime, datetime], other: tuple[int, datetime, datetime]
    ) -> tuple[int, datetime, datetime]:
        return one[0] + other[0], min(one[1], other[1]), max(one[2], other[2])

    @override
    def present(self, partial: tuple[int, datetime, datetime] | None) -> float | None:
        if partial is None or partial[1] == partial[2]:
            return None
        return (partial[0] - 1) * 1_000_000 / ((partial[2] - partial[1]) // MICROSECOND)

    @override
    def sql(self, x: str) -> str:
        micros = f"unix_micros(CASE WHEN {x} IS NOT NULL THEN ts END)"
        elapsed = f"(max({micros}) - min({micros}))"
        return f"CASE WHEN {elapsed} > 0 THEN (count({x}) - 1) * 1000000L / {elapsed} END"


def stamped(x: str) -> str:
    """A value with its time, null where the value is null."""
    return f"CASE WHEN {x} IS NOT NULL THEN struct(ts, {x} AS x) END"


def comparable(source: Any) -> Any:
    """The source's annotation without None. Raises TypeError for maps, which have no order."""
    inner, _ = without_none(source)
    if "MAP<" in sql_type(inner, "field"):
        raise TypeError("cannot order a dict: declare a pydantic model, or a list")
    return inner


def order(value: Any) -> Any:
    """A key that orders values as Spark does: nulls first, structs and lists element by element, text by bytes."""
    if value is None:
        return (0,)
    if is_model(type(value)):
        return (1, [order(getattr(value, name)) for name in type(value).model_fields])
    if isinstance(value, dict):
        return (1, [order(item) for item in value.values()])
    if isinstance(value, list):
        return (1, [order(item) for item in value])
    return (1, value.encode() if isinstance(value, str) else value)
