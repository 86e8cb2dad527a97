"""Departures by the hour that are published when their window closes, with topics that no other test has."""

import os
from datetime import timedelta

from contracts import Application, Emit, QueryOptions, Topics
from examples.departures.event import Departure
from examples.departures.state import Departures


def closing(prefix: str) -> Application:
    """The application with topics of this prefix."""
    return Application(
        name="closing",
        event=Departure,
        state=Departures,
        emit=Emit.CLOSE,
        topics=Topics(prefix=prefix, partitions=2),
        query=QueryOptions(remember=timedelta(days=1)),
    )


app = closing(os.environ.get("WINDOWS_PREFIX", ""))
