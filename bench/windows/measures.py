"""The measure `windows`, and its sizes."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness.load import SensorReading, readings

HOUR_S = 3600
OPEN_HOURS = 0.5
"""The events after the last whole hour. They show that it is over to engines that publish a window then."""
RECORDS_PER_S = 50_000


@dataclass(frozen=True)
class WindowCounts:
    """A backlog of whole hours and half an hour more, and a short one, which is its beginning.

    The figures are differences between the two, so that the start of a job is not in them.
    """

    name: str
    events: int
    keys: int
    hours: int = 12
    short_hours: int = 1

    @property
    def step_s(self) -> float:
        """The time between two events, as they are stamped."""
        return (self.hours + OPEN_HOURS) * HOUR_S / self.events

    @property
    def short_events(self) -> int:
        """How many of the events the shorter backlog has."""
        return round((self.short_hours + OPEN_HOURS) * HOUR_S / self.step_s)

    @property
    def estimate_s(self) -> float:
        """About how long both backlogs take, without the starts."""
        return (self.events + self.short_events) / RECORDS_PER_S

    def readings(self, end: float) -> Iterator[SensorReading]:
        """All events in order, those of the short backlog first. They end half an hour after a whole one."""
        return readings(self.events, self.keys, end, self.step_s)

    def __str__(self) -> str:
        return f"{self.events:,} events of {self.keys:,} keys in {self.hours} hours"


def measures(scale: int) -> tuple[WindowCounts, ...]:
    """All of them, of a size that is divided by so much."""
    return (WindowCounts("windows", 3_000_000 // scale, 10_000 // scale),)
