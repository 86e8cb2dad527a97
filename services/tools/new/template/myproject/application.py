"""The application: the event, the state of a device, and the call that enriches it. Change it to your own."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from stateloop import Api, Application, Count, Enriched, Event, Latest, Max, Mean, Policy, State, enrichment


class Reading(Event):  # device_id, event_id, first_seen and ts are there already
    """The event that a device sends."""

    temperature: float
    site: str


class Location(BaseModel):
    """A response of the API."""

    name: str
    limit: float
    """The highest temperature that the site allows."""


class Device(State, lifetime=timedelta(days=1)):
    """A day of a device. The annotation of each field names its reducer."""

    readings: Annotated[int, Count()]
    temperature: Annotated[float | None, Latest()]
    highest: Annotated[float | None, Max(of="temperature")]
    mean: Annotated[float | None, Mean(of="temperature")]
    site: Annotated[str | None, Latest()]
    location: Annotated[Location | None, Enriched()]


@enrichment(api="reference", stale_after=timedelta(minutes=10))
async def location(api: Api, site: str) -> Location:
    """Needs the field `site` of the state: a worker calls it for a new site, and again every ten minutes."""
    return await api.get("/sites/{site}", Location, site=site)


reference = Policy(timeout=timedelta(seconds=2), concurrency=20)
app = Application(
    name="myproject",
    event=Reading,
    state=Device,
    enrichments=(location,),
    apis={"reference": reference},
)
