"""The readings of three weather stations: the hourly weather at New York's airports in 2013, as events."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache

from pydantic import AwareDatetime

from examples.flights import tables
from stateloop import BaseEvent


class Reading(BaseEvent):
    """One hour's measurement of a station. Temperatures are in degrees Fahrenheit, as in the table."""

    event_id: str
    station: str
    """The airport: EWR, JFK or LGA."""
    first_seen: AwareDatetime
    """The time of the station's first reading in the table."""
    temperature: float | None = None
    humidity: float | None = None
    """In percent."""
    wind_speed: float | None = None
    """In miles per hour."""
    pressure: float | None = None
    """In millibars."""


def readings() -> Iterator[Reading]:
    """Yield the readings of all stations in the order of their times, a year of them."""
    for (station, hour), row in sorted(tables.weather().items(), key=lambda item: (item[0][1], item[0][0])):
        yield Reading(
            event_id=f"{station}/{hour}",
            station=station,
            first_seen=_first_seen()[station],
            ts=datetime.fromisoformat(hour),
            temperature=tables.number(row["temp"]),
            humidity=tables.number(row["humid"]),
            wind_speed=tables.number(row["wind_speed"]),
            pressure=tables.number(row["pressure"]),
        )


@cache
def _first_seen() -> dict[str, datetime]:
    """The time of the first reading of each station."""
    first: dict[str, datetime] = {}
    for station, hour in tables.weather():
        time = datetime.fromisoformat(hour)
        first[station] = min(first.get(station, time), time)
    return first
