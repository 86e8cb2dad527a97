"""The application: `examples.flights.application:app`."""

from examples.flights import derived
from examples.flights.enrichments import aircraft, airline, dest_airport, origin_airport, performance, route, weather
from examples.flights.event import FlightEvent
from examples.flights.state import FlightState
from stateloop import Application, QueryOptions, Topics

app = Application(
    name="flights",
    event=FlightEvent,
    state=FlightState,
    enrichments=(airline, origin_airport, dest_airport, aircraft, weather, route, performance),
    topics=Topics(replay=True),
    query=QueryOptions(history=16, indexes=("state.status", "state.carrier", "state.origin", "state.dest")),
    derived=(derived.aircraft,),
)
