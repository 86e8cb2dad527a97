"""Adds events to a script for which answers become stale, and requests come too soon."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.script import Fault, Script, Sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.script import Step

LAST_S = 2100.0
"""The time of the last event: that of the last one of other load."""
LIVES_S = 540.0
"""How long a car comes: until just before its window ends."""
PAUSES_S = ((0.1, 5.0), (5.0, 100.0), (115.0, 125.0), (175.0, 185.0), (190.0, 300.0))
"""The pauses between events: about the interval of one enrichment, and the age at which another is stale."""
STEPS_S = (365 * 24 * 3600.0, 3600.0, -3600.0)
"""By how much the clock of a worker is ahead, or behind."""


def spaced(script: Script) -> Script:
    """Return the script with such events if its application refreshes answers, or as it is."""
    if script.application != "refreshed":
        return script
    random, steps = Random(f"{script.seed} spaced"), list(script.steps)
    for number in range(random.randint(1, 3)):
        visit = list(_visit(random, f"d{number}", script))
        steps += visit
        if random.random() < 0.15:
            steps += _wrong_clocks(random, visit, script.workers)
    return replace(script, steps=tuple(sorted(steps, key=lambda step: step.at)))


def _visit(random: Random, device: str, script: Script) -> Iterator[Sent]:
    """Events of one window, perhaps about a fault."""
    faults = [fault.at for fault in script.faults]
    begin = random.uniform(1.0, LAST_S - LIVES_S)
    if faults and random.random() < 0.6:
        begin = min(LAST_S - 1.0, max(1.0, random.choice(faults) - random.uniform(0.0, 400.0)))
    at = begin
    for number in range(random.randint(3, 10)):
        plate, load = (
            random.choice(["p1", "p1", "p1", "p2", "p5", None]),
            random.choice([None, random.randint(-5, 100)]),
        )
        yield Sent(at, device, f"v{device}-{number}", begin, at, plate, load)
        at += random.uniform(*random.choice(PAUSES_S))
        if at > min(begin + LIVES_S, LAST_S):
            return


def _wrong_clocks(random: Random, visit: list[Sent], workers: int) -> Iterator[Step]:
    """Wrong clocks of one worker or of all, from about an event on."""
    at, lasts, ahead_s = random.choice(visit).at, random.choice([5.0, 60.0, 200.0]), random.choice(STEPS_S)
    for number in range(workers) if random.random() < 0.5 else [random.randrange(workers)]:
        yield Fault(max(0.5, at - random.uniform(0.1, 4.0)), "clock", f"worker-{number}", lasts, ahead_s)
