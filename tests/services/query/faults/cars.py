"""The application of these tests: cars, of which only window start and version matter."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Annotated

from contracts import Application, Event, Latest, State, Topics
from contracts.wire import Snapshot

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS = 4
NAME = "cars"


class Seen(Event):
    plate: str | None = None


class Car(State):
    plate: Annotated[str | None, Latest()]


def application(prefix: str) -> Application:
    """Return the application, a replay: its times are long ago, and windows do not expire by the clock."""
    topics = Topics(prefix=prefix, replay=True, partitions=PARTITIONS)
    return Application(name=NAME, event=Seen, state=Car, topics=topics)


def snapshot(key: str, version: int, minute: int = 0) -> bytes:
    """Return the record of a version of a car, in the window that starts this minute after BEGAN."""
    began = BEGAN + timedelta(minutes=minute)
    at = began + timedelta(milliseconds=version)
    return Snapshot(device_id=key, first_seen=began, version=version, as_of=at, state={"plate": key}).encode()


app = application(os.environ.get("CARS_PREFIX", ""))
