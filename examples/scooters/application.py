"""Rented scooters: position, speed, and the city's rules for the place of each."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, Field

from stateloop import Api, Application, Count, Enriched, Event, Latest, Max, Mean, Policy, Quantize, State, enrichment


class Ping(Event):  # device_id, event_id, first_seen and ts are there already
    """The event that a scooter sends."""

    speed: float | None = Field(default=None, ge=0)
    lat: float | None = None
    lon: float | None = None


class Place(BaseModel):
    """A result of the city's geocoder."""

    street: str
    district: str


class Rule(BaseModel):
    """The rules of a district."""

    limit_kmh: float


class Scooter(State, lifetime=timedelta(hours=1)):
    """One ride. The annotation of each field names its reducer."""

    pings: Annotated[int, Count()]
    speed: Annotated[float | None, Latest()]
    fastest: Annotated[float | None, Max(of="speed")]
    mean_speed: Annotated[float | None, Mean(of="speed")]
    lat: Annotated[float | None, Latest()]
    lon: Annotated[float | None, Latest()]
    place: Annotated[Place | None, Enriched()]
    rule: Annotated[Rule | None, Enriched()]


@enrichment(api="city")
async def place(api: Api, lat: Annotated[float, Quantize(0.001)], lon: Annotated[float, Quantize(0.001)]) -> Place:
    """Needs two fields of the state, rounded to about a hundred metres."""
    return await api.get("/reverse", Place, lat=lat, lon=lon)


@enrichment(api="city", stale_after=timedelta(minutes=30))
async def rule(api: Api, place: Place) -> Rule:
    """Needs the result of `place`."""
    return await api.get("/districts/{district}/rules", Rule, district=place.district)


city = Policy(timeout=timedelta(seconds=2), concurrency=20)
app = Application(name="scooters", event=Ping, state=Scooter, enrichments=(place, rule), apis={"city": city})
