"""Makes a script of a seed: what the job writes, and the faults of the instances, of the broker and of the topic."""

from __future__ import annotations

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
LONG_S = 8.0
"""How long a process is away that has to read its partitions again."""
KEYS = ("k0", "k3", "k8", "k14")
"""Of different partitions, as far as there are so many."""
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
    return Script(
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
