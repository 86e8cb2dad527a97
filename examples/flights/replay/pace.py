"""The speed of the replay."""

from collections.abc import Callable
from datetime import datetime


class Pace:
    """So many seconds of the data in one second of the clock, counted from the first event; None: no waiting."""

    def __init__(self, speed: float | None, clock: Callable[[], float]) -> None:
        self._speed = speed
        self._clock = clock
        self._origin: tuple[datetime, float] | None = None

    def remaining(self, ts: datetime) -> float:
        """Return how many seconds it still is until this time of the data; 0 or less when it is due."""
        if self._speed is None:
            return 0.0
        if self._origin is None:
            self._origin = ts, self._clock()
        first, began = self._origin
        return began + (ts - first).total_seconds() / self._speed - self._clock()
