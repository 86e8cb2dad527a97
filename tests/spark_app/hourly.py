"""Departures by the hour: an hour begins 90 minutes before the tests do, and one 30 minutes before."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Annotated

import orjson

from contracts import Application, BaseEvent, Count, Emit, State, Topics
from contracts.records.record import Record, timestamp_ms

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NOW = datetime.fromisoformat(os.environ.setdefault("HOURLY_NOW", datetime.now(UTC).replace(microsecond=0).isoformat()))
FORMER, PRESENT = NOW - 90 * MINUTE, NOW - 30 * MINUTE
"""The starts of an hour that is over, with its grace, and of one that is not."""


class Departure(BaseEvent):
    """A departure."""

    event_id: str
    airport: str


class Departures(
    State, key="airport", window=HOUR, grace=timedelta(minutes=5), offset=timedelta(seconds=FORMER.timestamp() % 3600)
):
    """The departures of an hour."""

    flights: Annotated[int, Count(of="event_id")]


def application(prefix: str, emit: Emit = Emit.EVENT, *, replay: bool = False) -> Application:
    """Return the application with topics of this prefix. Those of a replay are stamped by the producer."""
    return Application(
        name="hourly",
        event=Departure,
        state=Departures,
        topics=Topics(prefix=prefix, replay=replay),
        emit=emit,
        emit_interval=timedelta(seconds=1),
    )


def departure(airport: str, time: datetime) -> Record:
    """Return a departure whose record has its time."""
    event = {"event_id": f"{airport} {time}", "airport": airport, "ts": time}
    return Record("", 0, 0, timestamp_ms(time), airport.encode(), orjson.dumps(event))


app = application(os.environ.get("HOURLY_PREFIX", ""), Emit(os.environ.get("HOURLY_EMIT", Emit.EVENT)))
