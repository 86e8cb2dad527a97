"""The applications that the simulator runs: enrichments that need each other, and one that needs an aggregate."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from contracts import Api, Application, Count, Enriched, Event, Latest, Policy, State, Sum, Topics, enrichment

TIMEOUT = timedelta(seconds=2)
POLICY = Policy(timeout=TIMEOUT, attempts=4, backoff=timedelta(milliseconds=200))
MOST_PARTITIONS = 4


class Sighting(Event):
    plate: str | None = None
    load: int | None = None


class Owner(BaseModel):
    name: str


class Street(BaseModel):
    street: str


class Quote(BaseModel):
    price: int


class Car(State, lifetime=timedelta(hours=2), grace=timedelta(minutes=10)):
    plate: Annotated[str | None, Latest()]
    load: Annotated[int, Sum()]
    sightings: Annotated[int, Count(of="event_id")]
    owner: Annotated[Owner | None, Enriched()]
    street: Annotated[Street | None, Enriched()]
    quote: Annotated[Quote | None, Enriched()]


class ShortCar(Car, lifetime=timedelta(minutes=8), grace=timedelta(minutes=2)): ...


class Visits(Car, window=timedelta(minutes=10), every=timedelta(minutes=5), grace=timedelta(minutes=5)): ...


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    return await api.get("/owners/{plate}", Owner, plate=plate)


@enrichment(api="registry")
async def street(api: Api, owner: Owner) -> Street:
    return await api.get("/streets", Street, name=owner.name)


@enrichment(api="prices")
async def quote(api: Api, load: int, owner: Owner | None) -> Quote:
    return await api.get("/quotes", Quote, load=load, name=owner.name if owner else "nobody")


def application(name: str, state: type[State]) -> Application:
    return Application(
        name=name,
        event=Sighting,
        state=state,
        enrichments=(owner, street, quote),
        apis={"registry": POLICY, "prices": POLICY},
        topics=Topics(partitions=MOST_PARTITIONS),
    )


APPLICATIONS = {
    "cars": application("cars", Car),
    "short": application("short", ShortCar),
    "visits": application("visits", Visits),
}
"""By name: windows that outlive the script, windows that expire within it, and windows that overlap."""
