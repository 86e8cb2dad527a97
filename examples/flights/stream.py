"""The events of many flights as one stream, in the order of their times."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta

from examples.flights import tables
from examples.flights.event import NOTICE, FlightEvent, history
from examples.flights.flight import flight, zone

Place = tuple[datetime, str, str]
"""The position of an event in the stream, which is unique."""


def place(event: FlightEvent) -> Place:
    """The event's place in the stream."""
    return event.ts, event.device_id, event.event_id


def stream(days: Iterable[date]) -> Iterator[FlightEvent]:
    """The events of these days' flights, in the order of their times.

    Holds the events of about one day at a time: those that fall after a day's end wait for the next day's.
    """
    waiting: list[FlightEvent] = []
    for day in days:
        waiting += (event for row in tables.flights(day) for event in history(flight(row)))
        waiting.sort(key=place)
        end = begin(day + timedelta(days=1))
        ripe = sum(event.ts < end for event in waiting)
        yield from waiting[:ripe]
        waiting = waiting[ripe:]
    yield from waiting


def stream_after(days: list[date], last: Place | None) -> Iterator[FlightEvent]:
    """Yield the events after a position in the stream; all of them for None."""
    if last is None:
        return stream(days)
    # Two days before it, every flight has ended: no event lies 36 hours after its flight's first.
    remaining = [day for day in days if begin(day) > last[0] - timedelta(days=3)]
    return (event for event in stream(remaining) if place(event) > last)


def begin(day: date) -> datetime:
    """The earliest time that an event of this day's flights can have: the day begins in New York, less the notice."""
    return datetime.combine(day, time(), zone("JFK")).astimezone(UTC) - NOTICE
