"""The application of these tests: cars, of which a version and a beginning of life is all that is looked at."""

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
    """The application. Its lives were over long ago by the clock, which does not matter in a replay."""
    topics = Topics(prefix=prefix, replay=True, partitions=PARTITIONS)
    return Application(name=NAME, event=Seen, state=Car, topics=topics)


def snapshot(key: str, version: int, life: int = 0) -> bytes:
    """The record of a car's version, in a life that began so many minutes later than the first."""
    began = BEGAN + timedelta(minutes=life)
    at = began + timedelta(milliseconds=version)
    return Snapshot(device_id=key, first_seen=began, version=version, as_of=at, state={"plate": key}).encode()


app = application(os.environ.get("CARS_PREFIX", ""))
