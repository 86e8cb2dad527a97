"""What a flight sends."""

from datetime import timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime

from contracts import Event
from examples.flights.flight import Flight

NOTICE = timedelta(hours=2)
"""How long before its scheduled departure a flight is announced."""


class Kind(StrEnum):
    """What happened to the flight."""

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
    """Where it happened. Not of diverted ones: the table does not have their destination."""
    scheduled_departure: AwareDatetime | None = None
    """Of scheduled, as is the arrival."""
    scheduled_arrival: AwareDatetime | None = None
    tailnum: str | None = None
    """Of departed."""
    departed_at: AwareDatetime | None = None
    """Of departed."""
    delay: int | None = None
    """Of departed and landed, in minutes; negative when early."""
    landed_at: AwareDatetime | None = None
    """Of landed."""
    air_time: int | None = None
    """Of landed, in minutes."""
    distance: int | None = None
    """Of landed, in miles."""


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
