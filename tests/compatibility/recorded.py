"""A small application that every release since 0.2.0 can run: couriers, the owner of each plate, and derived plates."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel

from contracts import (
    Api,
    Application,
    Count,
    Derived,
    Enriched,
    Event,
    Latest,
    Max,
    Mean,
    Policy,
    State,
    Topics,
    enrichment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.wire import Snapshot


class Ping(Event):
    """An event of a courier."""

    speed: float
    plate: str | None = None


class Owner(BaseModel):
    """The owner of a plate."""

    name: str


class Courier(State, lifetime=timedelta(days=2)):
    """The state of a courier."""

    pings: Annotated[int, Count()]
    mean_speed: Annotated[float | None, Mean(of="speed")]
    top_speed: Annotated[float | None, Max(of="speed")]
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


class Driver(BaseModel):
    """The courier who drives with a plate."""

    courier: str


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    """Look the owner up."""
    return await api.get("/owners/{plate}", Owner, plate=plate)


def drivers(snapshot: Snapshot) -> Iterable[tuple[str, Driver]]:
    """Each plate has its courier."""
    if plate := snapshot.state.get("plate"):
        yield plate, Driver(courier=snapshot.device_id)


def application(prefix: str) -> Application:
    """Return the application on topics of this prefix."""
    return Application(
        name="couriers",
        event=Ping,
        state=Courier,
        enrichments=(owner,),
        apis={"registry": Policy(attempts=1)},
        topics=Topics(prefix=prefix, partitions=2, replay=True),
        derived=(Derived("plates", Driver, drivers),),
    )


app = application(os.environ.get("RECORDED_PREFIX", ""))
