"""An application that uses every kind of topic: enrichments, a derived state, a table, alerts and their webhook."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

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
    Table,
    Topics,
    Webhook,
    enrichment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contracts.wire import Snapshot

QUICK = Policy(attempts=2, backoff=timedelta(milliseconds=1), timeout=timedelta(seconds=20))


class Seen(Event):
    """A sighting of a car."""

    plate: str | None = None


class Owner(BaseModel):
    """The owner of a car."""

    name: str


class Car(State, lifetime=timedelta(hours=1)):
    """The last sighting of a car."""

    sightings: Annotated[int, Count(of="event_id")]
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


class Plate(BaseModel):
    """The car that has a plate."""

    car: str


class Limit(AlertRule):
    """Alerts after this number of sightings."""

    sightings: int


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    """Request the owner of a plate."""
    return await api.get("/owners/{plate}", Owner, plate=plate)


def plates(snapshot: Snapshot) -> Iterator[tuple[str, Plate]]:
    """The plate of a car."""
    if plate := snapshot.state["plate"]:
        yield plate, Plate(car=snapshot.device_id)


def exceeded(snapshot: Snapshot, limit: Limit) -> bool:
    """Whether the car was seen as often."""
    return int(snapshot.state["sightings"]) >= limit.sightings


LIMITS = Table("limits", Limit)
PREFIX = os.environ.get("SECURITY_PREFIX", "")

app = Application(
    name=f"{PREFIX}cars",
    event=Seen,
    state=Car,
    enrichments=(owner,),
    apis={"registry": QUICK},
    topics=Topics(prefix=PREFIX, partitions=2),
    derived=(Derived("plates", Plate, plates),),
    tables=(LIMITS,),
    alerts=(Alerts("often", LIMITS, exceeded, webhook=Webhook("pager", "/alerts", policy=QUICK)),),
)
