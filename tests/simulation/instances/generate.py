"""Makes a script of a seed: what the job writes, and the faults of the instances, of the broker and of the topic."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.instances.job import APPLICATIONS, MOST_PARTITIONS
from tests.simulation.instances.script import CLIENTS, FAULTS_S, LONGEST_S, Fault, Script, Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.instances.script import Step

FIRST_S = 4.0
DURATIONS_S = (0.3, 1.5, 4.0, 8.0, 14.0, LONGEST_S)
OF_INSTANCES = ("crash", "crash", "wipe", "power", "stop", "freeze", "freeze", "cut", "cut", "cut", "apart", "clock")
LARGEST_STEP_S = 1.5
"""Of a clock."""
SLOW_CLOCK_S = 45.0
"""How long a clock is behind, and from the beginning: a step back would be one over the time that tombstones stay."""
SLOWEST_CLOCK_S = 6.0
CALM, CALM_WITH_SLOW_CLOCK = 0.2, 0.5
"""The share of scripts without other faults: there, each delay is judged."""
FEW, MANY = 8, 60
"""The largest numbers of records: each of a few may be the last one of its key, and of its partition."""
CLEANED, CLEANED_EVERY_S = 0.3, 5
"""The share of scripts in which the broker compacts the topic regularly."""
FOLLOWED = 0.3
"""The share of scripts in which clients watch only changes."""
LONG_S = 8.0
"""How long a process is away that has to read its partitions again."""
KEYS = ("k0", "k3", "k8", "k14")
"""Of different partitions, as far as there are so many."""
LEADERLESS_S = 45.0
"""So long that the keys of other partitions must be answered after another fault has begun and ended."""
LEADERLESS = 0.2
"""The share of scripts without growth in which a partition has no leader for a while."""
GROWTHS, LATE = 0.15, 0.5
"""The share of scripts whose topics get more partitions, and of growths that an instance notices late."""
GROWTH_S = 23.0
"""The time in which partitions are added, the next job starts, and all instances use them."""
AGAIN_S = 16.0
"""The time that a killed command takes more, while the lease of its former process lasts."""
LOOKS = 14
"""The number of requests of the command before its last pause: a crash comes after one of them."""
KINDS = ("version", "version", "version", "window", "removed", "again")


def script(seed: int) -> Script:
    """Return the script of a seed."""
    random = Random(seed)
    instances = random.choice([1, 2, 2, 3, 3, 4])
    bursts = [random.uniform(FIRST_S, FAULTS_S) for _ in range(random.randint(1, 4))]
    slow = [*_slow_clock(random, instances)]
    is_calm = random.random() < (CALM_WITH_SLOW_CLOCK if slow else CALM)
    faults = [] if is_calm else [*_faults(random, instances, bursts)]
    steps: list[Step] = [*_load(random, bursts, faults), *slow, *faults, *_cleaning(random)]
    made = Script(
        seed,
        tuple(sorted(steps, key=lambda step: step.at)),
        random.choice([*APPLICATIONS]),
        random.randint(1, MOST_PARTITIONS),
        instances,
        random.choice([1, 2, 2, 3]),
        random.choice([1, 3, 1000]),
        random.choice([0.0, 0.0, 0.1]),
        random.choice([0.02, 0.5, 3.0]),
        random.choice([0, 500, 16_384]),
        random.random() < 0.5,
        random.choice([0.02, 0.02, 0.3]),
    )
    return replace(_leaderless(_grown(made)), followed=Random(f"{seed} followers").random() < FOLLOWED)


def _leaderless(script: Script) -> Script:
    """Return the script with a partition that has no leader for a while, or as it is."""
    random = Random(f"{script.seed} leaderless")
    if random.random() >= LEADERLESS or any(step.kind in {"grow", "recreate"} for step in script.steps):
        return script
    amount = float(random.randrange(script.partitions))
    at, lasts = random.uniform(FIRST_S, FAULTS_S), random.choice([*DURATIONS_S, LEADERLESS_S])
    fault = Fault(at, "leaderless", "topic", lasts, amount)
    return replace(script, steps=tuple(sorted([*script.steps, fault], key=lambda step: step.at)))


def _grown(script: Script) -> Script:
    """Return the script with growths of its topics, or as it is."""
    random = Random(f"{script.seed} growth")
    if random.random() >= GROWTHS:
        return script
    steps = [*script.steps, *_growths(random, script)]
    return replace(script, steps=tuple(sorted(steps, key=lambda step: step.at)))


def _growths(random: Random, script: Script) -> Iterator[Fault]:
    """Yield one growth or two, some of which are killed, or noticed late by an instance."""
    partitions, at = script.partitions, random.uniform(FIRST_S, FAULTS_S - 10.0)
    away_s = sum(step.lasts for step in script.steps if isinstance(step, Fault) and step.kind == "away")
    for _ in range(random.choice([1, 1, 1, 2])):
        partitions += random.randint(1, 3)
        lasts = GROWTH_S + away_s
        if random.random() < LATE:
            yield (late := _late(random, at, "abcd"[random.randrange(script.instances)]))
            lasts = max(lasts, late.lasts + GROWTH_S / 2)
        if random.random() < 0.3:
            down_s, at_once = random.choice([0.3, 3.0]), random.random() < 0.5
            after_s = random.uniform(0.0, GROWTH_S) if at_once else 0.0
            yield Fault(at + after_s, "crash", "growth", down_s, 0.0 if at_once else float(random.randint(1, LOOKS)))
            lasts += AGAIN_S + down_s + after_s
        yield Fault(at, "grow", "topic", lasts, float(partitions))
        at += lasts + random.uniform(0.0, 5.0)


def _late(random: Random, at: float, name: str) -> Fault:
    """Return the fault of an instance that notices a growth late: it begins with the growth."""
    lasts = random.uniform(2.0, 14.0)
    return random.choice([Fault(at, "late", name, lasts), Fault(at, "cut", name, lasts, float(CLIENTS.index("admin")))])


def _time(random: Random, bursts: list[float]) -> float:
    """Return a time at which something happens: mostly in a burst, because parts break while others are broken."""
    if random.random() < 0.7:
        return min(FAULTS_S, random.choice(bursts) + random.uniform(0.0, 6.0))
    return random.uniform(FIRST_S, FAULTS_S)


def _load(random: Random, bursts: list[float], faults: list[Fault]) -> Iterator[Step]:
    """Yield records at any time, and some while a part is broken, or when it is just whole again."""
    keys = KEYS[: random.randint(1, len(KEYS))]
    times = [_time(random, bursts) for _ in range(random.randint(3, random.choice([FEW, MANY])))]
    times += [fault.at + random.uniform(0.0, fault.lasts + 1.0) for fault in faults if random.random() < 0.4]
    for at in times:
        yield Written(at, random.choice(keys), random.choice(KINDS), random.randint(1, 5))


def _faults(random: Random, instances: int, bursts: list[float]) -> Iterator[Fault]:
    for _ in range(random.randint(1, 10)):
        lasts, at = random.choice(DURATIONS_S), _time(random, bursts)
        drawn = random.random()
        if drawn < 0.08:
            yield Fault(at, "away", "broker", lasts)
        elif drawn < 0.2:
            yield Fault(at, "compact", "topic")
        elif drawn < 0.23:
            yield Fault(at, "recreate", "topic")
        elif drawn < 0.3:
            yield Fault(at, "rebuild", "job")
        else:
            yield (fault := _of_instance(random, at, lasts, instances))
            yield from _at_its_end(random, fault, instances)


def _at_its_end(random: Random, fault: Fault, instances: int) -> Iterator[Fault]:
    """Yield what breaks when an instance is whole again: itself while it reads, or another one that it replaces."""
    end, drawn = fault.at + fault.lasts, random.random()
    if drawn < 0.2 and fault.lasts > LONG_S:
        yield Fault(end + random.uniform(0.2, 3.0), "crash", fault.part, 0.3)
    elif drawn < 0.4:
        kind, lasts = random.choice(["freeze", "cut", "apart"]), random.choice([1.5, 4.0, 8.0])
        amount = float(random.randrange(len(CLIENTS))) if kind == "cut" else 1.0
        yield Fault(end + random.uniform(-1.0, 1.0), kind, "abcd"[random.randrange(instances)], lasts, amount)


def _cleaning(random: Random) -> Iterator[Fault]:
    """Yield the compactions of a topic that the broker compacts regularly."""
    if random.random() < CLEANED:
        for at in range(round(FIRST_S), round(FAULTS_S), CLEANED_EVERY_S):
            yield Fault(float(at), "compact", "topic")


def _slow_clock(random: Random, instances: int) -> Iterator[Fault]:
    """Yield an instance whose clock is behind from the beginning: the others expire windows before it does."""
    if random.random() < 0.4:
        name = "abcd"[random.randrange(instances)]
        yield Fault(0.0, "clock", name, SLOW_CLOCK_S, -random.uniform(LARGEST_STEP_S, SLOWEST_CLOCK_S))


def _of_instance(random: Random, at: float, lasts: float, instances: int) -> Fault:
    kind = random.choice(OF_INSTANCES)
    amount = 0.0
    if kind == "clock":
        amount = random.uniform(-LARGEST_STEP_S, LARGEST_STEP_S)
    elif kind == "cut":
        amount = float(random.randrange(len(CLIENTS)))
    elif kind == "freeze":
        amount = float(random.randrange(2))  # whether the requests that came meanwhile are first
    return Fault(at, kind, "abcd"[random.randrange(instances)], lasts, amount)
