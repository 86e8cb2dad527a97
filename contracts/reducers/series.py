"""The reducer of series: samples at a rate, assembled from chunks by their position in the window."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Self, get_args, get_origin

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.reducers.base import NUMBERS, Reducer
from contracts.reducers.times import order
from contracts.types.columns import without_none
from contracts.types.quantize import MICROSECOND

SECOND_US = 1_000_000
LARGEST_NUMBER = len("-2.2250738585072014E-308,")
"""In bytes of JSON."""


@dataclass(frozen=True)
class Series(Reducer):
    """The samples of the window in the order of time, `rate` of them a second; null where there is none.

    An event is a chunk: a list of samples, the first of which was taken at `ts`. Its position is the number of sample
    periods since the start of the window, rounded. Chunks may come in any order, and a copy of one changes nothing.
    Where different chunks overlap, the one that starts first has its samples in the series; of those that start
    together the smaller one. The series ends with the last sample that is known. A chunk is in the window of its first
    sample, so a series may be longer than its window; a chunk that is longer than the window is cut to its length.
    """

    rate: float
    of: str | None = None
    unit: str | None = None
    window: timedelta | None = field(default=None, kw_only=True, repr=False)
    """The size of the windows, from the state."""

    def __post_init__(self) -> None:
        if not 0 < self.rate <= SECOND_US:
            raise DeclarationError(f"Series(rate={self.rate})", "is no rate", f"Write a number up to {SECOND_US}")

    @override
    def within(self, window: timedelta) -> Self:
        bound = replace(self, window=window)
        if not bound.samples:
            problem = f"makes no sample in a window of {window}"
            raise DeclarationError(f"Series(rate={self.rate})", problem, "Write a longer window, or a higher rate")
        return bound

    @property
    def samples(self) -> int:
        """The number of samples of a window."""
        return self._position(self._window_us)

    @property
    @override
    def largest(self) -> int:
        return (2 * self.samples + 1) * LARGEST_NUMBER

    @property
    @override
    def schema(self) -> dict[str, Any]:
        return {"x-rate-hz": self.rate} | ({"x-unit": self.unit} if self.unit else {})

    @override
    def gives(self, source: Any) -> Any:
        inner, _ = without_none(source)
        kind = without_none(get_args(inner)[0])[0] if get_origin(inner) is list else None
        if kind not in NUMBERS:
            raise TypeError("takes a field of type list[int] or list[float]")
        return list[kind | None]  # type: ignore[valid-type]  # the type of a sample is known at run time only

    @override
    def lift(self, value: list[Any], ts: datetime, start: datetime) -> frozenset[tuple[int, tuple[Any, ...]]]:
        offset = (ts - start) // MICROSECOND
        if not 0 <= offset < self._window_us or not value:
            return frozenset()
        return frozenset([(self._position(offset), tuple(value[: self.samples]))])

    def _position(self, offset_us: int) -> int:
        return int(offset_us * self.rate / 1e6 + 0.5)

    @override
    def merge(self, one: frozenset[Any], other: frozenset[Any]) -> frozenset[Any]:
        return one | other

    @override
    def present(self, partial: frozenset[Any] | None) -> list[Any]:
        series: list[Any] = []
        for position, samples in sorted(partial or (), key=lambda chunk: (chunk[0], order(list(chunk[1])))):
            series += [None] * (position - len(series))
            series += samples[len(series) - position :]
        return series

    @override
    def lift_sql(self, x: str) -> str:
        offset = "(unix_micros(ts) - unix_micros(first_seen))"
        position = f"CAST(CAST({offset} AS DOUBLE) * double('{self.rate!r}') / 1e6D + 0.5D AS INT)"
        chunk = f"struct({position} AS position, slice({x}, 1, {self.samples}) AS samples)"
        return f"CASE WHEN {offset} >= 0 AND {offset} < {self._window_us}L AND size({x}) > 0 THEN {chunk} END"

    @override
    def sql(self, x: str) -> str:
        # A function of lists finds the type of the samples in the chunks: they may be whole numbers or floats.
        none = f"transform(slice(collect_set({x}), 1, 0), chunk -> chunk.samples)"
        gap = "array_repeat(get(chunk.samples, -1), greatest(chunk.position - series.end, 0))"
        length = "size(chunk.samples)"
        more = f"slice(chunk.samples, greatest(series.end - chunk.position, 0) + 1, {length})"
        end = f"greatest(series.end, chunk.position + {length})"
        added = f"struct({end} AS end, concat(series.parts, array({gap}, {more})) AS parts)"
        chunks = f"sort_array(collect_set({x}))"
        assembled = f"(series, chunk) -> {added}, series -> flatten(series.parts)"
        return f"aggregate({chunks}, struct(0 AS end, {none} AS parts), {assembled})"

    @property
    def _window_us(self) -> int:
        if self.window is None:
            raise TypeError("the window of this Series is not known: call within()")
        return self.window // MICROSECOND
