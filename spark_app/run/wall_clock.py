"""Notices that the system clock was set back. Spark ends a batch by that clock: it would last for so much longer."""

import time
from collections.abc import Callable

from spark_app.errors import ClockSetBackError

TOLERANCE_S = 5.0
"""A smaller step only makes one batch longer."""


class WallClock:
    """The system clock (`now`) during a batch, compared with the monotonic one. Both are in seconds."""

    def __init__(self, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Begin a batch."""
        self._offset = self._now() - self._clock()

    def check(self) -> None:
        """Raise ClockSetBackError if the clock was set back since the batch began."""
        back_s = self._offset - (self._now() - self._clock())
        if back_s > TOLERANCE_S:
            raise ClockSetBackError(back_s)
