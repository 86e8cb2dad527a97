"""The state of a flight."""

from datetime import datetime, timedelta
from typing import Annotated

from examples.flights.event import Kind
from examples.flights.results import Aircraft, Airline, Airport, Performance, Route, Weather
from stateloop import Collect, Count, Distinct, Earliest, Enriched, Latest, Max, Mean, State


class FlightState(State, lifetime=timedelta(hours=36), grace=timedelta(hours=12)):
    """The state of a flight. The longest window in the tables is 34 h 42 min: to Honolulu, 21 h 41 min late."""

    events: Annotated[int, Count()]
    status: Annotated[Kind | None, Latest(of="kind")]
    kinds: Annotated[list[Kind], Collect(8, of="kind")]
    airports: Annotated[list[str], Distinct(4, of="airport")]
    last_heard: Annotated[datetime | None, Max(of="ts")]

    carrier: Annotated[str | None, Latest()]
    number: Annotated[int | None, Latest()]
    origin: Annotated[str | None, Latest()]
    dest: Annotated[str | None, Latest()]
    scheduled_departure: Annotated[datetime | None, Earliest()]
    scheduled_arrival: Annotated[datetime | None, Earliest()]
    tailnum: Annotated[str | None, Latest()]
    departed_at: Annotated[datetime | None, Earliest()]
    landed_at: Annotated[datetime | None, Latest()]
    air_time: Annotated[int | None, Latest()]
    distance: Annotated[int | None, Latest()]
    delay: Annotated[int | None, Latest()]
    worst_delay: Annotated[int | None, Max(of="delay")]
    mean_delay: Annotated[float | None, Mean(of="delay")]

    airline: Annotated[Airline | None, Enriched()]
    origin_airport: Annotated[Airport | None, Enriched()]
    dest_airport: Annotated[Airport | None, Enriched()]
    aircraft: Annotated[Aircraft | None, Enriched()]
    weather: Annotated[Weather | None, Enriched()]
    route: Annotated[Route | None, Enriched()]
    performance: Annotated[Performance | None, Enriched()]
