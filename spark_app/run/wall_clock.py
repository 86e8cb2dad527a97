"""Notices that the system clock was set back.

Spark ends a batch in real-time mode, and begins the next micro-batch, by that clock: both would be late by so much.
"""

import time
from collections.abc import Callable

from spark_app.errors import ClockSetBackError

TOLERANCE_S = 5.0
"""A smaller step only makes one batch longer."""


class WallClock:
    """The system clock (`now`), compared with the monotonic one (`clock`). Both are in seconds."""

    def __init__(self, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._clock = clock
        self._offset = now() - clock()

    def check(self) -> None:
        """Raise ClockSetBackError if the clock was set back since the last check."""
        former, self._offset = self._offset, self._now() - self._clock()
        back_s = former - self._offset
        if back_s > TOLERANCE_S:
            raise ClockSetBackError(back_s)
