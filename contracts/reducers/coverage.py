"""The reducer of coverage: the spans of the window for which there are data."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Self, get_origin

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.reducers.base import NUMBERS, Reducer, needs_type
from contracts.types.columns import without_none
from contracts.types.quantize import MICROSECOND

SECOND_US = 1_000_000
WORD = 64
MOST_STEPS = 64 * WORD
"""The maximum number of steps in a window: the state stores a bit for each, and merges a word for each 64 of them."""


@dataclass(frozen=True)
class Coverage(Reducer):
    """The spans of the window for which there are data, as half-open pairs of numbers of steps: `[[0, 60], [75, 90]]`.

    Step 0 starts with the window. A step is covered if any part of it is. An event with a value of the field `of`
    covers the instant `ts`; with `duration`, that span from `ts` on; with `rate`, the span of a list of values at so
    many a second; with `unit`, the span of a number of units, such as `timedelta(seconds=1)`. What an event covers
    after the end of its window is not in the next window.
    """

    step: timedelta
    of: str | None = "ts"
    duration: timedelta | None = None
    rate: float | None = None
    unit: timedelta | None = None
    window: timedelta | None = field(default=None, kw_only=True, repr=False)
    """The size of the windows, from the state."""

    def __post_init__(self) -> None:
        spans = {"step": self.step, "duration": self.duration, "unit": self.unit}
        for name, span in spans.items():
            if span is not None and span < MICROSECOND:
                raise DeclarationError(f"Coverage({name}={span})", "must be positive", "Write timedelta(seconds=1)")
        if self.rate is not None and not 0 < self.rate <= SECOND_US:
            raise DeclarationError(f"Coverage(rate={self.rate})", "is no rate", f"Write a number up to {SECOND_US}")
        if sum(option is not None for option in (self.duration, self.rate, self.unit)) > 1:
            raise DeclarationError("Coverage", "has several spans", "Write one of duration=, rate= and unit=")

    @override
    def within(self, window: timedelta) -> Self:
        bound = replace(self, window=window)
        if bound.steps > MOST_STEPS:
            least = -(-window // MOST_STEPS)
            problem = f"makes {bound.steps} steps of a window of {window}, and {MOST_STEPS} are allowed"
            raise DeclarationError(f"Coverage(step={self.step})", problem, f"Write a step of {least} or more")
        return bound

    @property
    def steps(self) -> int:
        """The number of steps of a window; the last one may be shorter."""
        return -(-self._window // self.step)

    @property
    @override
    def largest(self) -> int:
        return (self.steps + 1) // 2 * len(f"[{self.steps},{self.steps}],") + 2

    @property
    @override
    def schema(self) -> dict[str, Any]:
        return {"x-step-s": self.step.total_seconds()}

    @override
    def gives(self, source: Any) -> Any:
        inner, _ = without_none(source)
        if self.rate is not None and get_origin(inner) is not list:
            raise TypeError("with a rate takes a list of values")
        if self.unit is not None:
            needs_type(source, NUMBERS)
        return list[list[int]]

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> int:
        offset, window = (ts - start) // MICROSECOND, self._window // MICROSECOND
        low, high = max(offset, 0), min(offset + self._span(value), window)
        if low >= high:
            return 0
        step = self.step // MICROSECOND
        first, end = low // step, -(-high // step)
        return (1 << end) - (1 << first)

    def _span(self, value: Any) -> int:
        """The number of microseconds that an event covers."""
        if not self._per_second:
            return (self.duration or MICROSECOND) // MICROSECOND
        number = len(value) if self.rate else value
        span = min(number * 1e6 / self._per_second, self._window / MICROSECOND)
        return max(int(span + 0.5), 1) if number > 0 else 0

    @override
    def merge(self, one: int, other: int) -> int:
        return one | other

    @override
    def present(self, partial: int | None) -> list[list[int]]:
        edges = (partial or 0) ^ (partial or 0) << 1
        at = []
        while edges:
            at.append((edges & -edges).bit_length() - 1)
            edges &= edges - 1
        return [list(pair) for pair in zip(at[::2], at[1::2], strict=True)]

    @override
    def lift_sql(self, x: str) -> str:
        offset, window = "unix_micros(ts) - unix_micros(first_seen)", self._window // MICROSECOND
        low, high = f"greatest({offset}, 0L)", f"least({offset} + {self._span_sql(x)}, {window}L)"
        step = self.step // MICROSECOND
        first, end = f"CAST({low} DIV {step}L AS INT)", f"CAST(({high} + {step - 1}L) DIV {step}L AS INT)"
        return f"CASE WHEN {x} IS NOT NULL AND {low} < {high} THEN struct({first} AS first, {end} AS end) END"

    @override
    def sql(self, x: str) -> str:
        words = ", ".join(f"coalesce({_word(x, number * WORD)}, 0L)" for number in range(-(-self.steps // WORD)))
        # The last word takes the end of a span that reaches to the end of the window.
        return _pairs(_edges(f"array({words}, 0L)"))

    def _span_sql(self, x: str) -> str:
        if not self._per_second:
            return f"{(self.duration or MICROSECOND) // MICROSECOND}L"
        number = f"CAST({f'size({x})' if self.rate else x} AS DOUBLE)"
        span = f"least({number} * 1e6D / double('{self._per_second!r}'), {self._window // MICROSECOND}D)"
        return f"CASE WHEN {number} > 0 THEN greatest(CAST({span} + 0.5D AS BIGINT), 1L) ELSE 0L END"

    @property
    def _per_second(self) -> float | None:
        """The number of values, or of units, in a second."""
        return self.rate or (timedelta(seconds=1) / self.unit if self.unit else None)

    @property
    def _window(self) -> timedelta:
        if self.window is None:
            raise TypeError("the window of this Coverage is not known: call within()")
        return self.window


def _word(steps: str, before: int) -> str:
    """The SQL of the bits of the 64 steps after `before` steps, over an expression of the first step and the end."""
    low, high = f"greatest({steps}.first - {before}, 0)", f"least({steps}.end - {before}, {WORD})"
    bits = f"shiftleft(-1L, {low}) & shiftrightunsigned(-1L, {WORD} - {high})"
    return f"bit_or(CASE WHEN {steps}.first < {before + WORD} AND {steps}.end > {before} THEN {bits} END)"


def _edges(words: str) -> str:
    """The SQL of the bits at which coverage begins or ends, in words, over an expression of words."""
    before = "coalesce(shiftrightunsigned(get(words, i - 1), 63), 0L)"
    return _let("words", words, f"transform(words, (word, i) -> word ^ (shiftleft(word, 1) | {before}))")


def _pairs(edges: str) -> str:
    """The SQL of the positions of the bits of these words, two by two."""
    lowest = "64 * i + bit_count((todo.bits & -todo.bits) - 1L)"
    without_lowest = f"struct(todo.bits & (todo.bits - 1L) AS bits, array_append(todo.at, {lowest}) AS at)"
    none = "CAST(array() AS ARRAY<INT>)"
    bits = f"struct(word AS bits, {none} AS at), (todo, number) -> {without_lowest}, todo -> todo.at"
    positions = f"aggregate(sequence(1, bit_count(word)), {bits})"
    at = f"flatten(transform({edges}, (word, i) -> CASE WHEN word = 0 THEN {none} ELSE {positions} END))"
    pairs = "transform(at, (low, i) -> CASE WHEN i % 2 = 0 THEN array(low, get(at, i + 1)) END)"
    return _let("at", at, f"filter({pairs}, pair -> pair IS NOT NULL)")


def _let(name: str, value: str, body: str) -> str:
    """The SQL of `body` with a name for a value, which is computed once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"
