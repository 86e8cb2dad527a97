"""A clock that the test moves."""

from datetime import datetime, timedelta


class Clock:
    """A call returns the time, which is timezone-aware if the first one is."""

    def __init__(self, start: datetime) -> None:
        self._time = start

    def __call__(self) -> datetime:
        """The time now."""
        return self._time

    def forward(self, by: timedelta) -> None:
        """Advance the time."""
        self._time += by
