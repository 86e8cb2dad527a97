"""The application of the loop that `make faults` disturbs: meters, whose owner an API knows."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from contracts import Api, Application, Count, Enriched, Event, Latest, Policy, State, Sum, Topics, enrichment

PREFIX = "faults."
PARTITIONS = 4
DEADLINE = timedelta(seconds=60)
"""A request without an answer is a failure after this time, longer than each fault of the API lasts."""

LIFETIME = timedelta(minutes=10)
"""Of states that expire during a run."""


class Reading(Event):
    """A reading of a meter."""

    value: int
    plate: str | None = None


class Owner(BaseModel):
    """The owner of a plate."""

    name: str


class Meter(State, lifetime=timedelta(days=1)):
    """What a meter has sent."""

    readings: Annotated[int, Count()]
    total: Annotated[int, Sum(of="value")]
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


class PassingMeter(Meter, lifetime=LIFETIME):
    """The same, and forgotten while a loop runs for hours."""


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    """Look the owner up."""
    return await api.get("/owners/{plate}", Owner, plate=plate)


def meters(state: type[Meter]) -> Application:
    """The application with this state."""
    return Application(
        name="meters",
        event=Reading,
        state=state,
        enrichments=(owner,),
        apis={
            "registry": Policy(
                timeout=timedelta(seconds=8), deadline=DEADLINE, attempts=60, max_backoff=timedelta(seconds=2)
            )
        },
        topics=Topics(prefix=PREFIX, partitions=PARTITIONS),
    )


app, passing = meters(Meter), meters(PassingMeter)
