"""An application for tests: a car's plate gives its owner, the owner a street; and a quote becomes stale."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel

from contracts import Api, Application, Enriched, Event, Latest, Policy, State, Topics, enrichment
from contracts.wire import Answer, Snapshot

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT = timedelta(seconds=float(os.environ.get("FLEET_TIMEOUT_S", "0.5")))
QUICK = Policy(timeout=TIMEOUT, attempts=4, backoff=timedelta(milliseconds=1), concurrency=1000)
STALE = timedelta(minutes=1)


class Seen(Event):
    plate: str | None = None


class Owner(BaseModel):
    name: str
    rating: float = 1.0


class Street(BaseModel):
    street: str


class Quote(BaseModel):
    price: float


class Car(State):
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]
    street: Annotated[Street | None, Enriched()]
    quote: Annotated[Quote | None, Enriched()]


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    return await api.get("/owners/{plate}", Owner, plate=plate)


@enrichment(api="registry")
async def street(api: Api, owner: Owner) -> Street:
    return await api.get("/streets", Street, name=owner.name)


@enrichment(api="registry", stale_after=STALE)
async def quote(api: Api, plate: str) -> Quote:
    return await api.get("/quotes/{plate}", Quote, plate=plate)


def application(prefix: str = "") -> Application:
    """The application. Its windows expired long ago by the clock, which does not matter in a replay."""
    return Application(
        name=f"{prefix}fleet",
        event=Seen,
        state=Car,
        enrichments=(owner, street, quote),
        apis={"registry": QUICK},
        topics=Topics(prefix=prefix, replay=True),
    )


app = application(os.environ.get("FLEET_PREFIX", ""))


def snapshot(version: int, plate: str | None = "P1", device: str = "d1", **answers: Answer) -> Snapshot:
    """A car's snapshot, of its first window."""
    at = START + timedelta(seconds=version)
    return Snapshot(
        device_id=device,
        first_seen=START,
        version=version,
        as_of=at,
        state={"plate": plate, "owner": None, "street": None, "quote": None},
        enrichments=answers,
    )


def answer(version: int, fingerprint: str, result: dict[str, Any], ts: datetime = START) -> Answer:
    return Answer(version=version, status="result", ts=ts, fingerprint=fingerprint, result=result)
