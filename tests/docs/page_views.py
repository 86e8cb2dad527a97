"""Counts the views of each page in each country and hour."""

from datetime import timedelta
from typing import Annotated

from stateloop import Application, BaseEvent, Count, DistinctApprox, State


class View(BaseEvent):
    event_id: str
    country: str
    page: str
    visitor: str


class Views(State, key=("country", "page"), window=timedelta(hours=1), grace=timedelta(minutes=5)):
    views: Annotated[int, Count()]
    visitors: Annotated[int, DistinctApprox(of="visitor")]


app = Application(name="views", event=View, state=Views)
