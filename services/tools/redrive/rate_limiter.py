"""A limit of records a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class RateLimiter:
    """Call it before each record. A pause does not allow a burst after it."""

    def __init__(self, rate: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._gap = 1 / rate
        self._clock = clock
        self._sleep = sleep
        self._next = clock()

    def __call__(self) -> None:
        """Wait until the next record may be sent."""
        now = self._clock()
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + self._gap
