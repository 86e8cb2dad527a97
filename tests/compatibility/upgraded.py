"""The application of `upgrade.py`, its load, and what a plain fold expects of it. Each version of the suite can run it.

A courier sends pings in sessions. Each session has a plate of its own, so one call looks its owner up. Its speed is low
and high in turns of two events or more: a restarted job may merge an answer before an event that it followed, and so
may give one version of a session another state. No turn is lost by that, so each high one has one alert.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from contracts import (
    AlertRule,
    Alerts,
    Api,
    Application,
    Count,
    Derived,
    Enriched,
    Event,
    Latest,
    Policy,
    State,
    Sum,
    Table,
    Topics,
    Webhook,
    enrichment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.wire import Snapshot

PREFIX = "upgraded."
PARTITIONS, COURIERS = 4, 24
"""Of each topic, and of the load."""
EVENTS = range(6, 18)
"""Of a session: different numbers spread the calls over the time."""
HIGH, LOW = 60, 40
PATIENT = Policy(timeout=timedelta(seconds=60))
"""A busy machine is no reason to call again."""


class Ping(Event):
    """An event of a courier."""

    speed: int
    plate: str


class Owner(BaseModel):
    """The owner of a plate."""

    name: str


class Courier(State, lifetime=timedelta(days=2)):
    """The state of a session."""

    pings: Annotated[int, Count()]
    distance: Annotated[int, Sum(of="speed")]
    speed: Annotated[int | None, Latest()]
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


class Driver(BaseModel):
    """The courier who drives with a plate."""

    courier: str


class Limit(AlertRule):
    """An alert opens above `high`, and closes below `low`."""

    high: int
    low: int


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    """Look the owner up."""
    return await api.get("/owners/{plate}", Owner, plate=plate)


def drivers(snapshot: Snapshot) -> Iterable[tuple[str, Driver]]:
    """Each plate has its courier."""
    if plate := snapshot.state.get("plate"):
        yield plate, Driver(courier=snapshot.device_id)


def too_fast(snapshot: Snapshot, limit: Limit) -> bool:
    """Whether an alert opens."""
    return (snapshot.state.get("speed") or 0) > limit.high


def slow(snapshot: Snapshot, limit: Limit) -> bool:
    """Whether it closes."""
    return (snapshot.state.get("speed") or 0) < limit.low


LIMITS = Table("limits", Limit)
app = Application(
    name="couriers",
    event=Ping,
    state=Courier,
    deduplicate=False,
    enrichments=(owner,),
    apis={"registry": PATIENT},
    topics=Topics(prefix=os.environ.get("UPGRADED_PREFIX", PREFIX), partitions=PARTITIONS),
    derived=(Derived("plates", Driver, drivers),),
    tables=(LIMITS,),
    alerts=(Alerts("speeding", LIMITS, too_fast, slow, webhook=Webhook("pager", "/hooks", PATIENT)),),
)

Window = tuple[str, str]
"""Courier and start of the session."""


@dataclass
class Session:
    """The fold of the pings of a session."""

    plate: str
    left: int
    """The number of pings that are not sent yet."""
    pings: int = 0
    distance: int = 0
    speed: int = 0
    opened: int = 0
    closed: int = 0
    turn: int = 0
    """The number of pings that the present turn still has."""

    def next(self, speed: int) -> None:
        """Merge a ping."""
        is_open = self.opened > self.closed
        self.opened += speed > HIGH and not is_open
        self.closed += speed < LOW and is_open
        self.pings, self.distance, self.speed = self.pings + 1, self.distance + speed, speed

    def state(self) -> dict[str, Any]:
        """Return the state of a snapshot, and the owner."""
        state = {"pings": self.pings, "distance": self.distance, "speed": self.speed, "plate": self.plate}
        return state | {"owner": {"name": f"owner of {self.plate}"}}


@dataclass
class Load:
    """Events from a seed, and the sessions that they give."""

    seed: int
    sessions: dict[Window, Session] = field(default_factory=dict)
    newest: dict[str, Window] = field(default_factory=dict)
    """The newest session of each courier."""
    sent: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def event(self) -> tuple[str, bytes]:
        """Return key and value of the next event, of the couriers in turn."""
        courier = f"courier-{self.sent % COURIERS}"
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        if courier not in self.newest or self.sessions[self.newest[courier]].left == 0:
            self.newest[courier] = courier, now
            self.sessions[courier, now] = Session(f"{courier}-{self.sent}", self._random.choice(EVENTS))
        window = self.newest[courier]
        session = self.sessions[window]
        is_high = session.speed > HIGH
        if not session.turn:
            is_high, session.turn = not is_high, self._random.randint(2, 4)
        session.turn, session.left = session.turn - 1, session.left - 1
        speed = self._random.randint(HIGH + 1, 99) if is_high else self._random.randint(1, LOW - 1)
        session.next(speed)
        own = {"device_id": courier, "first_seen": window[1], "event_id": str(self.sent), "ts": now}
        self.sent += 1
        return courier, json.dumps(own | {"speed": speed, "plate": session.plate}).encode()
