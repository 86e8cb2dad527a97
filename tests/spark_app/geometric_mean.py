"""The geometric mean of positive numbers."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from stateloop import Reducer


@dataclass(frozen=True)
class GeometricMean(Reducer):
    """The nth root of the product of n positive numbers. Its last digits depend on the order."""

    depends_on_order: ClassVar[bool] = True
    of: str | None = None

    def gives(self, source: Any) -> Any:
        """The type of the state's field; the event's field must be a float."""
        if source not in (float, float | None):
            raise TypeError("takes a field of type float")
        return float | None

    def lift(self, value: float, ts: datetime, start: datetime) -> tuple[int, float]:
        """One value: the count, and the sum of logarithms."""
        return 1, math.log(value)

    def merge(self, one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
        """Both."""
        return one[0] + other[0], one[1] + other[1]

    def present(self, partial: tuple[int, float] | None) -> float | None:
        """The mean; None without a value."""
        return None if partial is None else math.exp(partial[1] / partial[0])

    def sql(self, x: str) -> str:
        """The same in Spark SQL."""
        return f"exp(avg(ln({x})))"
