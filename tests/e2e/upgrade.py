"""An application before and after fields were added, renamed, removed and changed: machines, owners and streets."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel

from contracts import Api, Application, Count, Enriched, Enrichment, Latest, Max, Policy, State, Topics, enrichment
from tests.e2e.windows import Owner, Seen, owner


class Street(BaseModel):
    """The address of an owner."""

    street: str


class Before(State, lifetime=timedelta(hours=2)):
    """The state of a machine."""

    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]
    street: Annotated[Street | None, Enriched()]


class After(Before):
    """The state with two fields more."""

    events: Annotated[int, Count()]
    seen: Annotated[datetime | None, Max(of="ts")]


class Renamed(State, lifetime=timedelta(hours=2)):
    """That state without `seen`, with another reducer of `events`, and with other names of `plate` and `owner`."""

    registration: Annotated[str | None, Latest(of="plate", alias="plate")]
    keeper: Annotated[Owner | None, Enriched(alias="owner")]
    street: Annotated[Street | None, Enriched()]
    events: Annotated[int, Count(of="plate")]


@enrichment(api="registry")
async def street(api: Api, owner: Owner) -> Street:
    """Request the address of the owner."""
    return await api.get("/streets", Street, name=owner.name)


@enrichment(api="registry")
async def keeper(api: Api, registration: str) -> Owner:
    """The owner of a plate."""
    return await api.get("/owners/{plate}", Owner, plate=registration)


def street_of_keeper() -> Enrichment:
    """The enrichment `street`, by the new name of what it needs."""

    @enrichment(api="registry")
    async def street(api: Api, keeper: Owner) -> Street:
        return await api.get("/streets", Street, name=keeper.name)

    return street


def application(state: type[State], enrichments: tuple[Enrichment, ...] = (owner, street)) -> Application:
    """The application with this state. A slow machine is no reason to call again."""
    return Application(
        name="machines",
        event=Seen,
        state=state,
        enrichments=enrichments,
        apis={"registry": Policy(timeout=timedelta(minutes=4), deadline=timedelta(minutes=5))},
        topics=Topics(prefix=os.environ.get("WINDOWS_PREFIX", ""), partitions=2),
    )


app_before, app_after = application(Before), application(After)
app_renamed = application(Renamed, (keeper, street_of_keeper()))
