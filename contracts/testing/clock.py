"""A clock that the test moves."""

from datetime import datetime, timedelta


class Clock:
    """Call it for the time; it is timezone-aware if what it starts with is."""

    def __init__(self, start: datetime) -> None:
        self._time = start

    def __call__(self) -> datetime:
        """The time now."""
        return self._time

    def forward(self, by: timedelta) -> None:
        """Let time pass."""
        self._time += by
