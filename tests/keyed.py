"""An event whose device is named by a field of its own, and records with keys on both sides of their bounds."""

from collections.abc import Iterator
from typing import Annotated

from contracts import Application, Count, Event, State
from contracts.types.key import LARGEST_KEY
from tests import hostile


class Trip(Event):
    car: str


class Driven(State, key="car"):
    trips: Annotated[int, Count(of="event_id")]


app = Application(name="keyed", event=Trip, state=Driven)


def events() -> Iterator[bytes]:
    """Three good ones, and three with a key that is empty or too large."""
    yield from (hostile.good(car=car) for car in ("c", "c" * LARGEST_KEY, "ä" * (LARGEST_KEY // 2)))
    yield from (hostile.good(car=car) for car in ("", "c" * (LARGEST_KEY + 1), "ä" * (LARGEST_KEY // 2 + 1)))
