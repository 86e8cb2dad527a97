"""Events of flights: unique, in order, and within a window."""

from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import pytest

from examples.flights import tables
from examples.flights.event import FlightEvent, Kind, history
from examples.flights.flight import Flight, flight, zone
from examples.flights.state import FlightState

FULL = [pytest.mark.slow, pytest.mark.full]
COMMON = {"device_id", "event_id", "first_seen", "ts", "kind", "carrier", "number", "origin", "dest", "airport"}
OWN = {
    Kind.SCHEDULED: {"scheduled_departure", "scheduled_arrival"},
    Kind.CANCELLED: set[str](),
    Kind.DEPARTED: {"tailnum", "departed_at", "delay"},
    Kind.DIVERTED: set[str](),
    Kind.LANDED: {"landed_at", "delay", "air_time", "distance"},
}


YEAR = tables.days(date(2013, 1, 1), 365)
SAMPLE = [*YEAR[::40], date(2013, 3, 9), date(2013, 3, 10), date(2013, 11, 3)]
"""Days of all seasons, and those around the changes of the clocks."""


@pytest.fixture(scope="module", params=[pytest.param(SAMPLE, id="days"), pytest.param(YEAR, id="year", marks=FULL)])
def days(request: pytest.FixtureRequest) -> list[date]:
    found: list[date] = request.param
    return found


@pytest.fixture(scope="module")
def flights(days: list[date]) -> list[Flight]:
    return [flight(row) for day in days for row in tables.flights(day)]


def test_flights_are_unique(flights: list[Flight], days: list[date]) -> None:
    assert len(flights) == len({one.device_id for one in flights})
    assert days != YEAR or len(flights) == 336_776


def test_each_flight_has_events_in_order_within_its_window(flights: list[Flight], days: list[date]) -> None:
    kinds: Counter[str] = Counter()
    ids = set[str]()
    for one in flights:
        events = history(one)
        kinds.update(event.kind for event in events)
        times = [event.ts for event in events]
        assert all(a < b for a, b in pairwise(times)), one
        assert {event.first_seen for event in events} == {times[0]}
        assert times[-1] - times[0] < FlightState.lifetime, one
        ids.update(event.event_id for event in events)
    assert len(ids) == kinds.total()
    assert kinds["scheduled"] == len(flights) == kinds["departed"] + kinds["cancelled"]
    assert days != YEAR or kinds == {
        "scheduled": 336_776,
        "departed": 328_521,
        "landed": 328_063,
        "cancelled": 8_255,
        "diverted": 1_175,
    }


def test_instants_show_the_clock_times_of_the_table(flights: list[Flight], days: list[date]) -> None:
    rows = (row for day in days for row in tables.flights(day))
    wrong = [one.device_id for one, row in zip(flights, rows, strict=True) if not shows_its_clocks(one, row)]
    assert wrong == ["2013-03-09/B6/35/JFK-PBI"]  # its 02:03 did not exist on that night


def shows_its_clocks(one: Flight, row: tables.Row) -> bool:
    departed = one.departed_at and one.departed_at.astimezone(zone(one.origin))
    landed = one.landed_at and one.landed_at.astimezone(zone(one.dest))
    clocks = [local and local.hour * 100 + local.minute for local in (departed, landed)]
    return clocks == [clock(row["dep_time"]), clock(row["arr_time"])]


def clock(written: str) -> int | None:
    whole = tables.whole(written)
    return None if whole is None else whole % 2400


@pytest.mark.parametrize("day", [date(2013, 1, 1), date(2013, 6, 15)])
def test_each_kind_carries_its_own_fields_and_those_that_name_the_flight(day: date) -> None:
    for row in tables.flights(day):
        for event in history(flight(row)):
            given = event.model_fields_set & event.model_dump(exclude_none=True).keys()
            assert given <= COMMON | OWN[event.kind], event


def test_a_flight_that_was_diverted_and_came_after_all() -> None:
    assert reported("2013-01-01/MQ/4525/LGA-XNA") == [
        ("scheduled", "2013-01-01T18:30:00+00:00", None),
        ("departed", "2013-01-01T20:25:00+00:00", -5),
        ("diverted", "2013-01-02T00:00:00+00:00", None),
        ("landed", "2013-01-02T01:34:00+00:00", None),
    ]


def test_a_flight_over_midnight() -> None:
    last = events("2013-01-01/MQ/3944/JFK-BWI")[-1]
    assert last.ts - last.first_seen == timedelta(hours=17, minutes=26)


def reported(device_id: str) -> list[tuple[str, str, int | None]]:
    return [(event.kind.value, event.ts.isoformat(), event.delay) for event in events(device_id)]


def events(device_id: str) -> list[FlightEvent]:
    rows = tables.flights(date.fromisoformat(device_id[:10]))
    return next(history(one) for one in map(flight, rows) if one.device_id == device_id)
