"""An application that declares all that a graph can show."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel

from contracts import Api, Application, Budget, Enriched, Event, Latest, Quantize, State, enrichment


class Ping(Event):
    lat: float | None = None
    speed: float | None = None
    at: datetime | None = None


class Found(BaseModel):
    value: float


class Car(State):
    lat: Annotated[float | None, Latest()]
    speed: Annotated[float | None, Latest()]
    at: Annotated[datetime | None, Latest()]
    place: Annotated[Found | None, Enriched()]
    rule: Annotated[Found | None, Enriched()]
    fit: Annotated[Found | None, Enriched()]
    fine: Annotated[Found | None, Enriched()]


def moving(speed: float) -> bool:
    return speed > 0


@enrichment(api="city", at_most_every=timedelta(seconds=30))
async def place(api: Api, lat: Annotated[float, Quantize(0.001)]) -> Found:
    return await api.get("/place", Found, lat=lat)


@enrichment(api="city", stale_after=timedelta(minutes=90), when=moving)
async def rule(api: Api, place: Found, speed: float) -> Found:
    return await api.get("/rule", Found, place=place.value, speed=speed)


@enrichment(api="fits", rounds=5)
async def fit(api: Api, at: Annotated[datetime, Quantize(timedelta(hours=1))], fit: Found | None) -> Found:
    return await api.get("/fit", Found, at=str(at), last=fit.value if fit else 0.0)


@enrichment(api="court", when=lambda speed, rule: speed > rule.value)
async def fine(api: Api, speed: float, rule: Found, fit: Found | None) -> Found:
    return await api.get("/fine", Found, speed=speed, rule=rule.value, fit=fit.value if fit else 0.0)


app = Application(name="cars", event=Ping, state=Car, enrichments=(fine, rule, fit, place), budget=Budget(requests=20))
