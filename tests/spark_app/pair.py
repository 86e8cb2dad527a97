"""An application of two fields."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Annotated, Any

from pydantic import create_model

from contracts import Application, Event, Latest, State, Topics


class Measured(Event):
    """An event with two values of one type."""

    a: float | None = None
    b: float | None = None


class Hourly(State, lifetime=timedelta(hours=1)):
    """A state without fields of its own."""


def pair(order: str) -> Application:
    """Return the application whose state declares its fields in this order."""
    fields: dict[str, Any] = {name: (Annotated[float | None, Latest()], ...) for name in order}
    return Application(
        name="pair",
        event=Measured,
        state=create_model("Pair", __base__=Hourly, **fields),
        topics=Topics(prefix=os.environ.get("PAIR_PREFIX", ""), replay=True),
    )


app = pair("ab")
