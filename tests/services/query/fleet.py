"""An application for tests of the whole service: cars, of which the last three versions are kept."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from contracts import Application, Event, Latest, State, Topics
from contracts.model.named_state import QueryOptions
from contracts.wire import Snapshot

START = datetime(2026, 1, 1, tzinfo=UTC)


class Seen(Event):
    plate: str | None = None


class Car(State):
    plate: Annotated[str | None, Latest()]


def application(prefix: str) -> Application:
    """Return the application, a replay: its times are long ago, and windows do not expire by the clock.

    With FLEET_REPLAY=no it is none.
    """
    return Application(
        name="cars",
        event=Seen,
        state=Car,
        topics=Topics(prefix=prefix, replay=os.environ.get("FLEET_REPLAY") != "no"),
        query=QueryOptions(history=3, indexes=("state.plate",), stale_after=timedelta(seconds=1)),
    )


app = application(os.environ.get("FLEET_PREFIX", ""))


def snapshot(device: str, version: int, after: timedelta = timedelta(0), **state: Any) -> Snapshot:
    """Return a snapshot of a car, in the window that starts this long after START."""
    at = START + after
    return Snapshot(
        device_id=device, first_seen=at, version=version, as_of=at + timedelta(seconds=version), state=state
    )
