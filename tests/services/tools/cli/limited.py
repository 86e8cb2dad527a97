"""An application with a reference table, on topics of one test."""

import os

from pydantic import BaseModel, ConfigDict

from contracts import Application, QueryOptions, Table, Topics
from examples.scooters.application import Ping, Scooter, place, rule


class Limit(BaseModel):
    """The greatest speed of a scooter."""

    model_config = ConfigDict(extra="forbid")

    speed: float


app = Application(
    name="scooters",
    event=Ping,
    state=Scooter,
    enrichments=(place, rule),
    topics=Topics(prefix=os.environ.get("LIMITED_PREFIX", "")),
    tables=(Table("limits", Limit, query=QueryOptions(history=4)),),
)
