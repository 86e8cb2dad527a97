"""A live application with windows of an hour, for tests of the whole service."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Annotated

from contracts import Application, Coverage, Event, State, Topics

HOUR = timedelta(hours=1)
GRACE = timedelta(minutes=5)


class Seen(Event):
    car: str
    ts: datetime


class Hourly(State, key="car", window=HOUR, grace=GRACE):
    seen: Annotated[list[list[int]], Coverage(timedelta(minutes=1))]


app = Application(name="cars", event=Seen, state=Hourly, topics=Topics(prefix=os.environ.get("FLEET_PREFIX", "")))
