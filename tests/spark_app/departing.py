"""Departures by the hour on topics that the broker stamps."""

import os

from contracts import Application, Topics
from examples.departures.event import Departure
from examples.departures.state import Departures


def application() -> Application:
    """The application with the prefix of the environment."""
    topics = Topics(prefix=os.environ.get("DEPARTING_PREFIX", ""), partitions=2)
    return Application(name="departing", event=Departure, state=Departures, topics=topics)


app = application()
