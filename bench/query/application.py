"""The state that is queried: of the size that the benchmark needs, and without other meaning."""

from datetime import timedelta
from typing import Annotated

from contracts import Application, Event, Latest, State, Topics
from contracts.model.named_state import QueryOptions


class Written(Event):
    """An event, of which there is none: the benchmark writes snapshots itself."""

    check: str | None = None
    text: str | None = None


class Kept(State, lifetime=timedelta(days=1)):
    """The state of a key."""

    check: Annotated[str | None, Latest()]
    text: Annotated[str | None, Latest()]


app = Application(name="keys", event=Written, state=Kept, topics=Topics(partitions=2), query=QueryOptions(history=1))
