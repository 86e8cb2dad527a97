"""Adds what operators do to a script: they add partitions to its topics, restore savepoints, or roll a rebuild back."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.script import Fault, Forged, FormerJob, Savepoint, Script, Sent, Tombstone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.script import Step

GROWTHS, RESTORES = 0.12, 0.1
"""The shares of scripts whose topics grow, and whose job is restored."""
ROLLBACKS, CLOSED_ROLLBACKS, REBUILT_ROLLBACKS = 0.05, 0.3, 0.4
"""The shares of scripts whose job goes back to the state before a rebuild: of all, of those that publish windows when
they are over, of which each is published once, and of those with a rebuild."""
CHAINS = (("rollback",), ("rollback", "rollback"), ("rollback", "rebuild"), ("rollback", "rebuild", "rollback"))
"""What follows a rebuild."""
SOON_S, LATER_S = (0.1, 30.0), (30.0, 900.0)
"""The time until each of them: before the job has caught up, or after windows have closed."""
REBUILT_S = 1500.0
"""The latest time of a rebuild that is added: windows close before its rollback."""
LATEST_S = 2100.0
"""The latest begin of a growth, and of others: it ends before the quiet end of the script, although faults delay it."""
GROWTH_S = 60.0
"""The time of a growth that nothing delays."""
FORMER_S = 2700.0
"""The time at which the restored job has claimed the topics."""
COMMAND = ("crash", "crash", "cut", "unacknowledged", "freeze", "interrupted", "suspended", "suspended")
"""The faults of the command that adds the partitions."""
OPERATOR = ("start", "again")
"""What an operator does while the command is frozen."""
WRITES = 60
"""The number of its looks and writes: a crash or a freeze comes before one of them."""
FREEZE_S = (5.0, 120.0)
"""How long it is frozen. The lease of the checkpoint lasts for 15 s."""


def maintained(script: Script) -> Script:
    """Return the script with maintenance, or as it is."""
    random = Random(f"{script.seed} maintenance")
    kind, steps = random.random(), list(script.steps)
    load = [step.at for step in script.steps if isinstance(step, Sent)]
    at = min(LATEST_S, max(1.0, random.choice(load) + random.uniform(-60.0, 5.0)))
    if kind < GROWTHS:
        steps = [step for step in steps if not _is_in_the_way(step, at)]
        steps += _growth(random, at, script.partitions)
    if kind < GROWTHS / 4 or GROWTHS <= kind < GROWTHS + RESTORES:
        steps += _restore(random, at, load)
    steps += _rollbacks(script, load)
    return replace(script, steps=tuple(sorted(steps, key=lambda step: step.at)))


def _is_in_the_way(step: Step, growth_at: float) -> bool:
    """Return whether a step writes snapshots during or after a growth, or is of a part that does not run."""
    is_foreign = isinstance(step, Tombstone) or (isinstance(step, Forged) and step.topic == "snapshots")
    is_webhook = isinstance(step, Fault) and step.part.startswith(("webhook", "pager"))
    return is_webhook or (is_foreign and step.at >= growth_at)


def _growth(random: Random, at: float, partitions: int) -> Iterator[Fault]:
    """Growths, perhaps with faults of the command."""
    for _ in range(random.choice([1, 1, 1, 2])):
        partitions += random.randint(1, 3)
        yield Fault(at, "growth", "job", GROWTH_S, partitions)
        for _ in range(random.choice([0, 1, 1, 2])):
            kind = random.choice(COMMAND)
            lasts, amount = random.uniform(0.5, 20.0), float(random.randint(1, 2))
            begin = at + random.uniform(0.0, GROWTH_S)
            if kind in {"interrupted", "suspended"}:
                begin, amount = at, float(random.randint(1, WRITES))
            if kind in {"freeze", "suspended"}:
                lasts = GROWTH_S + random.uniform(*FREEZE_S)
                yield Fault(begin + random.uniform(0.0, lasts), random.choice(OPERATOR), "job")
            yield Fault(begin, kind, "growth", lasts, amount)
        at += random.uniform(2 * GROWTH_S, 600.0)
        if at > LATEST_S:
            return


def _rollbacks(script: Script, load: list[float]) -> Iterator[Step]:
    """Rollbacks of a rebuild, perhaps with another rebuild. The draws of a script without them stay what they are.

    Where each window is published once, a rebuild may lack events.
    """
    random = Random(f"{script.seed} rollbacks")
    rebuilt = [fault.at for fault in script.faults if (fault.part, fault.kind) == ("job", "rebuild")]
    share, builds = ROLLBACKS, ["rebuild"]
    if script.application == "closed":
        share, builds = CLOSED_ROLLBACKS, ["rebuild", "incomplete"]
    if random.random() >= (max(share, REBUILT_ROLLBACKS) if rebuilt else share):
        return
    at = random.choice(rebuilt or [min(REBUILT_S, max(1.0, random.choice(load) + random.uniform(-5.0, 60.0)))])
    if not rebuilt:
        yield Fault(at, random.choice(builds), "job", random.uniform(0.5, 20.0))
    for number, kind in enumerate(random.choice(CHAINS)):
        within_s = random.choice([LATER_S, SOON_S, SOON_S if number else LATER_S])
        at = max(at, min(LATEST_S, at + random.uniform(*within_s)))
        yield Fault(at, random.choice(builds) if kind == "rebuild" else kind, "job", random.uniform(0.5, 20.0))
    if random.random() < 0.3:
        yield FormerJob(FORMER_S)


def _restore(random: Random, at: float, load: list[float]) -> Iterator[Step]:
    """Savepoints, and the last one is restored later, perhaps twice, perhaps while more events come."""
    for _ in range(random.choice([1, 1, 2])):
        yield Savepoint(random.uniform(max(1.0, at - 300.0), at))
    for _ in range(random.choice([1, 1, 2])):
        later = [time for time in load if time > at] or [at]
        at = max(at + 1.0, min(LATEST_S, random.choice([at + random.uniform(0.1, 600.0), random.choice(later)])))
        yield Fault(at, "restore", "job", random.uniform(0.5, 60.0))
    if random.random() < 0.5:
        yield FormerJob(FORMER_S)
