"""The events of a flight."""

from datetime import timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime

from examples.flights.flight import Flight
from stateloop import Event

NOTICE = timedelta(hours=2)
"""The time from the announcement of a flight to its scheduled departure."""


class Kind(StrEnum):
    """The kind of an event."""

    SCHEDULED = "scheduled"
    CANCELLED = "cancelled"
    DEPARTED = "departed"
    DIVERTED = "diverted"
    LANDED = "landed"


class FlightEvent(Event):
    """One thing that happened to a flight. Each kind carries its own fields, and those that name the flight."""

    kind: Kind
    carrier: str
    number: int
    origin: str
    dest: str
    airport: str | None = None
    """The airport of the event; none of diverted flights, whose destination the table lacks."""
    scheduled_departure: AwareDatetime | None = None
    """Only in `scheduled` events, like the arrival."""
    scheduled_arrival: AwareDatetime | None = None
    tailnum: str | None = None
    """Only in `departed` events."""
    departed_at: AwareDatetime | None = None
    """Only in `departed` events."""
    delay: int | None = None
    """Only in `departed` and `landed` events, in minutes; negative when early."""
    landed_at: AwareDatetime | None = None
    """Only in `landed` events."""
    air_time: int | None = None
    """Only in `landed` events, in minutes."""
    distance: int | None = None
    """Only in `landed` events, in miles."""


def history(flight: Flight) -> list[FlightEvent]:
    """All events of a flight, in the order of their times.

    The table has no time at which a flight was cancelled or diverted: it is cancelled when it should have left, and
    diverted when, by its scheduled duration, it should have landed.
    """
    events = [_scheduled(flight)]
    if flight.departed_at is None:
        events.append(_event(flight, Kind.CANCELLED, flight.scheduled_departure, airport=flight.origin))
        return events
    events.append(_departed(flight))
    if flight.air_time is None:
        duration = flight.scheduled_arrival - flight.scheduled_departure
        events.append(_event(flight, Kind.DIVERTED, flight.departed_at + duration))
    if flight.landed_at is not None:
        events.append(_landed(flight))
    return events


def _scheduled(flight: Flight) -> FlightEvent:
    return _event(
        flight,
        Kind.SCHEDULED,
        flight.scheduled_departure - NOTICE,
        airport=flight.origin,
        scheduled_departure=flight.scheduled_departure,
        scheduled_arrival=flight.scheduled_arrival,
    )


def _departed(flight: Flight) -> FlightEvent:
    return _event(
        flight,
        Kind.DEPARTED,
        flight.departed_at,
        airport=flight.origin,
        tailnum=flight.tailnum,
        departed_at=flight.departed_at,
        delay=flight.departure_delay,
    )


def _landed(flight: Flight) -> FlightEvent:
    return _event(
        flight,
        Kind.LANDED,
        flight.landed_at,
        airport=flight.dest,
        landed_at=flight.landed_at,
        delay=flight.arrival_delay,
        air_time=flight.air_time,
        distance=flight.distance,
    )


def _event(flight: Flight, kind: Kind, ts: AwareDatetime | None, **own: Any) -> FlightEvent:
    return FlightEvent.model_validate(
        {
            "device_id": flight.device_id,
            "event_id": f"{flight.device_id}/{kind.value}",  # unique among all flights of an airport or a carrier
            "first_seen": flight.scheduled_departure - NOTICE,
            "ts": ts,
            "kind": kind,
            "carrier": flight.carrier,
            "number": flight.number,
            "origin": flight.origin,
            "dest": flight.dest,
            **own,
        }
    )
