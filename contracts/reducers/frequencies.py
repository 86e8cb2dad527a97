"""The reducer of frequencies: the most frequent values, with their counts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel
from typing_extensions import override

from contracts.reducers.base import Reducer, needs_positive, needs_type
from contracts.reducers.times import MOST_KEPT, order
from contracts.types.columns import choices, without_none

T = TypeVar("T")


class ValueCount(BaseModel, Generic[T]):
    """A value, and how often it occurred."""

    value: T
    count: int


@dataclass(frozen=True)
class TopK(Reducer):
    """The `k` most frequent values with their counts, most frequent first; of equally frequent ones the smallest.

    The state stores up to `capacity` values of a key, and each record costs time in proportion to them. The counts are
    exact while there are no more distinct values than that. Beyond it, a count is too high by at most 2.63 / capacity
    of the number of values, and a value that is rarer than twice that may be missing: the job has a sketch of frequent
    items (Apache DataSketches), which depends on the order. The plain fold counts exactly.
    """

    depends_on_order: ClassVar[bool] = True
    k: int
    of: str | None = None
    capacity: int = 96

    def __post_init__(self) -> None:
        needs_positive("TopK(capacity=…)", self.capacity, MOST_KEPT)
        needs_positive("TopK(k=…)", self.k, self.capacity)

    @override
    def gives(self, source: Any) -> Any:
        inner, _ = without_none(source)
        kind = inner if choices(inner) else needs_type(source, (str, int, bool))
        return list[ValueCount[kind]]  # type: ignore[valid-type]  # the value's type is known at run time only

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> dict[Any, int]:
        return {value: 1}

    @override
    def merge(self, one: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        return one | {value: one.get(value, 0) + count for value, count in other.items()}

    @override
    def present(self, partial: dict[Any, int] | None) -> list[dict[str, Any]]:
        ranked = sorted((partial or {}).items(), key=lambda item: (-item[1], order(item[0])))
        return [{"value": value, "count": count} for value, count in ranked[: self.k]]

    @override
    def sql(self, x: str) -> str:
        # It counts nulls too, and leaves the order of equally frequent values open.
        counted = f"approx_top_k({x}, {self.capacity}, {self.capacity}) FILTER (WHERE {x} IS NOT NULL)"
        ranked = f"sort_array(transform({counted}, one -> struct(-one.count AS count, one.item AS value)))"
        return f"transform(slice({ranked}, 1, {self.k}), one -> struct(one.value AS value, -one.count AS count))"
