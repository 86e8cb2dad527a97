"""A suite of two applications, and looks at its loops: departures has other figures than flights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contracts import Suite
from examples.departures.application import departures
from examples.flights.application import app as flights
from services.query.cluster import Role
from services.query.console.observation import StateObservation
from tests.services.query.console.looks import at_work, job_of

if TYPE_CHECKING:
    from services.query.console.observation import Observation

SUITE = Suite(flights, departures)
KEYS = {"flights": 4200.0, "departures": 17.0}
RATE = 10.0
"""The snapshots of departures in a second."""


def two_at_work(at: float, *, until: float, starts: float = 1) -> Observation:
    """Both loops at work for so many seconds; without `starts`, the query of departures has not started."""
    flying = at_work(at, until=until)
    assert flying.ends is not None
    batch = {"committed_at": flying.clock.timestamp() - 2, "watermark": 1_357_000_000 + at}
    own = {name: batch | {"keys": keys} for name, keys in KEYS.items()}
    own["departures"]["starts"] = starts
    topics = departures.topics
    ends = {topics.snapshots: {0: round(RATE * at)}, topics.feedback: {0: 0}, topics.dead_letters: {0: 1}}
    _, *others = flying.parts
    state = StateObservation("departures", topics.snapshots, {Role.OWNER: 2}, 0, 0)
    return replace(flying, parts=(job_of(**own), *others), ends=flying.ends | ends, states=(*flying.states, state))
