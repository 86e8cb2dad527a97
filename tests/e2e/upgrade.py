"""An application before and after a field was added to its state: machines, the owner of each plate, and a street."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from contracts import Api, Application, Count, Enriched, Latest, Policy, State, Topics, enrichment
from tests.e2e.windows import Owner, Seen, owner


class Street(BaseModel):
    """Where an owner lives."""

    street: str


class Before(State, lifetime=timedelta(hours=2)):
    """The state of a machine."""

    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]
    street: Annotated[Street | None, Enriched()]


class After(Before):
    """The state with a field more."""

    events: Annotated[int, Count()]


@enrichment(api="registry")
async def street(api: Api, owner: Owner) -> Street:
    """Where the owner lives."""
    return await api.get("/streets", Street, name=owner.name)


def application(state: type[State]) -> Application:
    """The application with this state. A slow machine is no reason to call again."""
    return Application(
        name="machines",
        event=Seen,
        state=state,
        enrichments=(owner, street),
        apis={"registry": Policy(timeout=timedelta(minutes=4), deadline=timedelta(minutes=5))},
        topics=Topics(prefix=os.environ.get("WINDOWS_PREFIX", ""), partitions=2),
    )


app_before, app_after = application(Before), application(After)
