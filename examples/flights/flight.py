"""One flight of the table, with its times as instants."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from examples.flights import tables

UNLISTED = "America/Puerto_Rico"
"""The clock of the four destinations that the airports table lacks: BQN, PSE and SJU, and STT of the Virgin Islands."""
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Flight:
    """A row of the table. Delays and air time are in minutes.

    The table has local clock times, origin's for departures and destination's for arrivals. The instants come from
    `time_hour` (which is UTC) and the delays, because a clock time has neither a day nor an offset.
    They show the table's `dep_time` and `arr_time` on every flight but one: that `arr_time` was on no clock
    (02:03 on the night of 10 March).
    """

    date: str
    carrier: str
    number: int
    origin: str
    dest: str
    distance: int
    scheduled_departure: datetime
    scheduled_arrival: datetime
    tailnum: str | None
    departed_at: datetime | None
    """None for a cancelled flight."""
    departure_delay: int | None
    landed_at: datetime | None
    arrival_delay: int | None
    air_time: int | None
    """None, as is the arrival's delay, for a flight that did not fly straight to its destination."""

    @property
    def device_id(self) -> str:
        """Unique: on one day, a carrier uses a number for one leg only."""
        return f"{self.date}/{self.carrier}/{self.number}/{self.origin}-{self.dest}"


def flight(row: tables.Row) -> Flight:
    """The flight of a row."""
    departure = datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=int(row["minute"]))
    arrival = showing(int(row["sched_arr_time"]), departure, zone(row["dest"]))
    late, late_there = tables.whole(row["dep_delay"]), tables.whole(row["arr_delay"])
    departed = None if late is None else departure + timedelta(minutes=late)
    return Flight(
        date=f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}",
        carrier=row["carrier"],
        number=int(row["flight"]),
        origin=row["origin"],
        dest=row["dest"],
        distance=int(row["distance"]),
        scheduled_departure=departure,
        scheduled_arrival=arrival,
        tailnum=tables.text(row["tailnum"]),
        departed_at=departed,
        departure_delay=late,
        landed_at=arrival + timedelta(minutes=late_there) if late_there is not None else _detour(row, departed),
        arrival_delay=late_there,
        air_time=tables.whole(row["air_time"]),
    )


def showing(clock: int, earliest: datetime, where: ZoneInfo) -> datetime:
    """The first instant from the earliest on when a clock there shows this time, as in 1430 (2400 is midnight)."""
    local = earliest.astimezone(where).replace(hour=clock // 100 % 24, minute=clock % 100)
    instant = local.astimezone(UTC)
    return instant if instant >= earliest else (local + DAY).astimezone(UTC)


@cache
def zone(faa: str) -> ZoneInfo:
    """The time zone of an airport."""
    listed = tables.airports().get(faa)
    return ZoneInfo(listed["tzone"] if listed else UNLISTED)


def _detour(row: tables.Row, departed: datetime | None) -> datetime | None:
    """Return the arrival of a diverted flight at its destination: the table has a clock time only, and no delay."""
    clock = tables.whole(row["arr_time"])
    return None if clock is None or departed is None else showing(clock, departed, zone(row["dest"]))
