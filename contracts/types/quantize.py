"""Declared rounding of inputs: values within one step give the same input."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from contracts.errors import DeclarationError
from contracts.types.bounds import instant
from contracts.types.columns import LONG
from contracts.types.declaration import Declaration

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
REACH = Decimal("0.75")
"""The distance in steps up to which a value keeps the multiple of the slot's last request: a half and a quarter."""
EXACT = 2**50
"""The number of steps from which a float is hardly finer than the step: it is not rounded."""


@dataclass(frozen=True)
class Quantize(Declaration):
    """Rounds an input to the nearest multiple of a step: a number, or for times a timedelta (counted from 1970).

        async def place(api: Api, lat: Annotated[float, Quantize(0.001)]) -> Place: ...

    The function receives the rounded value. A value that crosses the border between two multiples keeps the
    one of the last request, until it is three quarters of a step away from it.
    """

    step: float | timedelta

    def __post_init__(self) -> None:
        size = self.step.total_seconds() if isinstance(self.step, timedelta) else self.step
        if not (math.isfinite(size) and size > 0):
            raise DeclarationError(
                f"Quantize({self.step!r})", "is no step", "Write Quantize(0.01), or Quantize(timedelta(hours=1))"
            )

    def fits(self, kind: Any) -> bool:
        """Return whether inputs of this type can be rounded by this step."""
        if isinstance(self.step, timedelta):
            return kind is datetime
        return kind is float or (kind is int and isinstance(self.step, int))

    def choices(self, value: Any) -> tuple[Any, ...]:
        """The multiples that a value, as it is on the wire, may stand for: the nearest, and the one within reach.

        A value of another type than the step's is not changed.
        """
        steps = self._steps(value)
        if steps is None:
            return (value,)
        nearest = steps.to_integral_value(ROUND_HALF_EVEN)
        if abs(nearest) >= EXACT:
            return (value,)
        other = nearest + (1 if steps > nearest else -1)
        within = (nearest, other) if abs(steps - other) <= REACH else (nearest,)
        return tuple(self._multiple(number, value) for number in within)

    def _steps(self, value: Any) -> Decimal | None:
        if isinstance(self.step, timedelta):
            time = instant(value) if isinstance(value, str) else value
            if not isinstance(time, datetime):
                return None
            return Decimal((time - EPOCH) // MICROSECOND) / (self.step // MICROSECOND)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return Decimal(repr(value)) / Decimal(repr(self.step)) if is_number else None

    def _multiple(self, number: Decimal, value: Any) -> Any:
        """Return the multiple as a value of JSON; the value itself if its type cannot represent the multiple."""
        try:
            if isinstance(self.step, timedelta):
                return (EPOCH + self.step * int(number)).isoformat().replace("+00:00", "Z")
            multiple = number * Decimal(repr(self.step))
            if isinstance(value, int) and isinstance(self.step, int):
                return int(multiple) if -LONG <= multiple < LONG else value
            return float(multiple) + 0.0  # which makes 0.0 of -0.0
        except OverflowError:
            return value
