"""Reducers of sets: distinct values, exactly or by a sketch, and positions in a bitmap."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.reducers.base import ORDERED, Reducer, needs_positive, needs_type
from contracts.reducers.times import MOST_KEPT, order

WORD = 64
LEAST_LG_K, MOST_LG_K = 4, 21
"""As DataSketches takes them."""


@dataclass(frozen=True)
class Distinct(Reducer):
    """The distinct values, sorted, up to the smallest `n`.

    Published are `n`; the state stores all values of one window, so use DistinctApprox where they can be many.
    """

    n: int = 100
    of: str | None = None

    def __post_init__(self) -> None:
        needs_positive("Distinct", self.n, MOST_KEPT)

    @override
    def gives(self, source: Any) -> Any:
        return list[needs_type(source, ORDERED)]  # type: ignore[misc]  # the element's type is known at run time only

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> list[Any]:
        return [value]

    @override
    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        return sorted(set(one) | set(other), key=order)[: self.n]

    @override
    def present(self, partial: list[Any] | None) -> list[Any]:
        return partial or []

    @override
    def sql(self, x: str) -> str:
        return f"slice(sort_array(collect_set({x})), 1, {self.n})"


@dataclass(frozen=True)
class DistinctApprox(Reducer):
    """About how many distinct values there were: a HyperLogLog sketch of 2**lg_k registers (Apache DataSketches).

    The plain fold counts exactly. The relative standard error is 0.83 / sqrt(2**lg_k): 1.3 % for 12.
    """

    of: str | None = None
    lg_k: int = 12

    def __post_init__(self) -> None:
        if not LEAST_LG_K <= self.lg_k <= MOST_LG_K:
            write = f"Write a number from {LEAST_LG_K} to {MOST_LG_K}"
            raise DeclarationError(f"DistinctApprox(lg_k={self.lg_k})", "is no size of a sketch", write)

    @override
    def gives(self, source: Any) -> Any:
        needs_type(source, (str, int))
        return int

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> frozenset[Any]:
        return frozenset([value])

    @override
    def merge(self, one: frozenset[Any], other: frozenset[Any]) -> frozenset[Any]:
        return one | other

    @override
    def present(self, partial: frozenset[Any] | None) -> int:
        return len(partial or ())

    @override
    def sql(self, x: str) -> str:
        # The sketch passes over an empty text; with a sign before it, it counts like any other.
        return f"hll_sketch_estimate(hll_sketch_agg(concat('=', {x}), {self.lg_k}))"


@dataclass(frozen=True)
class Bitmap(Reducer):
    """The set of seen positions 0 … bits-1, as words of 64 bits: position i is bit i % 64 of word i // 64.

    A position outside is ignored. Words are signed, as Spark's are.
    """

    bits: int
    of: str | None = None

    def __post_init__(self) -> None:
        needs_positive("Bitmap", self.bits, 64 * WORD)

    @property
    def words(self) -> int:
        """The number of words."""
        return -(-self.bits // WORD)

    @override
    def gives(self, source: Any) -> Any:
        needs_type(source, (int,))
        return list[int]

    @override
    def lift(self, value: int, ts: datetime, start: datetime) -> int:
        return 1 << value if 0 <= value < self.bits else 0

    @override
    def merge(self, one: int, other: int) -> int:
        return one | other

    @override
    def present(self, partial: int | None) -> list[int]:
        raw = (partial or 0).to_bytes(self.words * WORD // 8, "little")
        return [int.from_bytes(raw[i : i + 8], "little", signed=True) for i in range(0, len(raw), 8)]

    @override
    def sql(self, x: str) -> str:
        return f"array({', '.join(self._word(x, word) for word in range(self.words))})"

    def _word(self, x: str, word: int) -> str:
        low, high = word * WORD, min(self.bits, (word + 1) * WORD)
        bit = f"shiftleft(1L, CAST({x} - {low} AS INT))"
        return f"coalesce(bit_or(CASE WHEN {x} >= {low} AND {x} < {high} THEN {bit} END), 0L)"
