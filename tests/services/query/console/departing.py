"""A suite of two applications, and observations of its loops: departures has other metrics than flights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contracts import Suite
from contracts.api.loop import StateStatus
from examples.departures.application import departures
from examples.flights.application import app as flights
from tests.services.query.console.observations import at_work, away, job_of

if TYPE_CHECKING:
    from services.query.console.observation import Observation

SUITE = Suite(flights, departures)
KEYS = {"flights": 4200.0, "departures": 17.0}
RATE = 10.0
"""The snapshots of departures in a second."""


def two_at_work(at: float, *, until: float, starts: float = 1, down: str = "") -> Observation:
    """Return both loops after so many seconds; with `starts=0`, the query of departures has not started.

    The processes of the kind `down` do not answer.
    """
    flying = at_work(at, until=until)
    assert flying.end_offsets is not None
    batch = {"committed_at": flying.clock.timestamp() - 2, "watermark": 1_357_000_000 + at}
    own = {name: batch | {"keys": keys} for name, keys in KEYS.items()}
    own["departures"]["starts"] = starts
    topics = departures.topics
    end_offsets = {topics.snapshots: {0: round(RATE * at)}, topics.feedback: {0: 0}, topics.dead_letters: {0: 1}}
    _, *others = flying.parts
    state = StateStatus(name="departures", topic=topics.snapshots, roles={"owner": 2}, lag=0, unowned=0)
    parts = tuple(away(one.target) if one.target.kind == down else one for one in (job_of(**own), *others))
    return replace(flying, parts=parts, end_offsets=flying.end_offsets | end_offsets, states=(*flying.states, state))
