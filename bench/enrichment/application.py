"""The application that the worker is measured with: one enrichment, which asks an API for the place of a vehicle."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from bench.harness.topics import PARTITIONS
from contracts import Api, Application, Count, Enriched, Event, Latest, Max, Mean, Policy, State, enrichment
from contracts.model.topics import Topics

PATIENT = Policy(timeout=timedelta(seconds=10), concurrency=1_000)
"""A slow answer takes five seconds, and is an answer."""


class CellPing(Event):
    """The event of a vehicle."""

    speed: float | None = None
    lat: float | None = None
    lon: float | None = None
    cell: int | None = None


class CellPlace(BaseModel):
    """The API's answer about a cell."""

    number: int
    name: str
    district: str
    limit_kmh: float


class Vehicle(State, lifetime=timedelta(hours=1)):
    """The state of a vehicle."""

    pings: Annotated[int, Count()]
    speed: Annotated[float | None, Latest()]
    fastest: Annotated[float | None, Max(of="speed")]
    mean_speed: Annotated[float | None, Mean(of="speed")]
    lat: Annotated[float | None, Latest()]
    lon: Annotated[float | None, Latest()]
    cell: Annotated[int | None, Latest()]
    place: Annotated[CellPlace | None, Enriched()]


@enrichment(api="places")
async def place(api: Api, cell: int) -> CellPlace:
    """One call, named by one field of the state."""
    return await api.get("/places/{cell}", CellPlace, cell=cell)


app = Application(
    name="vehicles",
    event=CellPing,
    state=Vehicle,
    enrichments=(place,),
    apis={"places": PATIENT},
    topics=Topics(partitions=PARTITIONS),
)
