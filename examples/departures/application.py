"""The flights, and the counts of their departures by hour and by day: `examples.departures.application:suite`."""

from datetime import timedelta

from examples.departures.event import Departure
from examples.departures.state import CarrierDay, Departures
from examples.flights.application import app as flights
from stateloop import Application, Emit, QueryOptions, State, Suite, Topics

YEAR = timedelta(days=366)


def counts(name: str, state: type[State], prefix: str = "") -> Application:
    """Return an application with this state of the flights' events. The names of all its topics begin with `prefix`."""
    return Application(
        name=name,
        event=Departure,
        state=state,
        topics=Topics(prefix=f"{prefix}{name}_", events=f"{prefix}events", replay=True),
        emit=Emit.BATCH,
        emit_interval=timedelta(seconds=5),
        query=QueryOptions(indexes=("state.flights", "state.late"), remember=YEAR),
    )


departures = counts("departures", Departures)
carriers = counts("carriers", CarrierDay)
suite = Suite(flights, departures, carriers)
