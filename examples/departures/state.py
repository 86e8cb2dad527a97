"""The counts of one window, and the windows in which they are kept."""

from datetime import timedelta
from typing import Annotated

from stateloop import Count, Max, Mean, Quantiles, State, Sum, TopK, ValueCount, field

LATE_MINUTES = 15
"""A flight is late from this delay on, as in the reports of the US Department of Transportation."""
DEPARTED = field("kind") == "departed"
CANCELLED = field("kind") == "cancelled"
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WINTER_TIME = timedelta(hours=5)


class Departures(State, key="origin", window=HOUR, grace=12 * HOUR, where=DEPARTED | CANCELLED):
    """The departures from one airport in one hour. Delays are in minutes, negative when early."""

    flights: Annotated[int, Count(where=DEPARTED)]
    cancelled: Annotated[int, Count(where=CANCELLED)]
    late: Annotated[int, Count(where=field("delay") >= LATE_MINUTES)]
    total_delay: Annotated[int, Sum(of="delay")]
    mean_delay: Annotated[float | None, Mean(of="delay")]
    worst_delay: Annotated[int | None, Max(of="delay")]
    delays: Annotated[list[float], Quantiles((0.5, 0.9, 0.99), of="delay")]
    destinations: Annotated[list[ValueCount[str]], TopK(3, of="dest", where=DEPARTED)]


class CarrierDay(Departures, key="carrier", window=DAY, offset=WINTER_TIME):
    """The departures of one carrier on one day, which begins at midnight in New York, winter time."""
