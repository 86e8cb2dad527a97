"""An application whose devices have several windows: machines at sites, with an owner of each plate."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel

from contracts import Api, Application, Derived, Enriched, Event, Latest, State, Topics, enrichment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.wire import Snapshot


class Seen(Event):
    """An event of a machine."""

    plate: str | None = None


class Owner(BaseModel):
    """Whose it is."""

    name: str


class Machine(State, lifetime=timedelta(hours=2)):
    """The state of one."""

    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


class Site(BaseModel):
    """The last plate at a site."""

    plate: str


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    """The owner."""
    return await api.get("/owners/{plate}", Owner, plate=plate)


def sites(snapshot: Snapshot) -> Iterable[tuple[str, Site]]:
    """All machines are at one site."""
    return [("site", Site(plate=snapshot.state["plate"]))]


app = Application(
    name="machines",
    event=Seen,
    state=Machine,
    enrichments=(owner,),
    topics=Topics(prefix=os.environ.get("WINDOWS_PREFIX", ""), partitions=2),
    derived=(Derived("sites", Site, sites),),
)
