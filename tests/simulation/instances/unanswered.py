"""The times in which nothing is broken, and in which each key must be answered all the time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from contracts.wire.partition import partition
from tests.simulation.instances.script import BOUND_S, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulation.instances.script import Script

HARMLESS = ("clock", "compact")
"""The faults that explain no late answer."""
LONGEST_S = 15.0
"""The longest time between two answers about a key: some requests and their answers are lost, or take long."""


def broken(script: Script, key: str) -> list[tuple[float, float]]:
    """Return the times in which a fault explains a missing or late answer about a key, in the order of their begin."""
    return [
        (step.at, step.at + step.lasts + BOUND_S)
        for step in script.steps
        if isinstance(step, Fault) and step.kind not in HARMLESS and _concerns(script, step, key)
    ]


def _concerns(script: Script, fault: Fault, key: str) -> bool:
    return fault.kind != "leaderless" or partition(key.encode(), script.partitions) == script.leaderless(fault)


def unanswered(script: Script, key: str, answered: Sequence[float]) -> Iterator[str]:
    """Yield the times in which nobody answers about a key, although nothing is broken."""
    for first, last in _whole(script, key):
        times = [first, *(at for at in answered if first < at < last), last]
        for before, after in pairwise(times):
            if after - before > LONGEST_S:
                yield f"nobody answers {key} from {before:.2f} to {after:.2f}"


def _whole(script: Script, key: str) -> Iterator[tuple[float, float]]:
    """Yield the times between faults, from the one on at which the instances have surely started."""
    begin = BOUND_S
    for first, last in sorted(broken(script, key)):
        yield begin, first
        begin = max(begin, last)
    yield begin, script.quiet_at
