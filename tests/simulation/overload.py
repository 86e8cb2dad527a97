"""Steps of scripts that give workers more requests than they run at once, or than they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.script import Compact, Fault, Sent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.simulation.script import Step


def stream(random: Random, at: float, lasts: float) -> Iterator[Sent]:
    """Many events of one device at a steady pace, so that requests for it wait, overtake each other, and come back."""
    pace_s, plates = random.choice([0.1, 0.3]), random.choice([("p1", "p2"), ("p1", "p2", "p5")])
    first_seen = max(0.0, at - random.uniform(0.0, 200.0))
    moments = [at + number * pace_s for number in range(random.randint(12, 24))]
    for number, moment in enumerate([*moments, moments[-1] + random.uniform(5.0, 70.0), at + lasts + 70.0]):
        yield Sent(moment, "d0", f"s{number}", first_seen, moment, random.choice(plates), random.randint(-5, 100))


def deferral(random: Random, workers: int, api: str, at: float) -> Iterator[Step]:
    """An outage with more requests than workers keep, and what may happen while some wait and others are deferred."""
    at, lasts = min(at, 2000.0) + 160.0, random.choice([30.0, 60.0, 150.0])
    worker = f"worker-{random.randrange(workers)}"
    kind = random.choice(["hang", "down", "unavailable", "throttled", "throttled"])
    yield Fault(at - 1.0, kind, api, lasts)
    dense_s = random.choice([3.0, 10.0, 30.0])
    devices = [f"d{number}" for number in range(random.randint(2, 6))]
    for number in range(random.randint(8, 20)):
        moment, plate = at + random.uniform(0.0, dense_s), random.choice(["p1", "p2", "p3", "p5", None])
        yield Sent(moment, random.choice(devices), f"w{number}", at - 10.0, moment, plate, random.randint(-5, 100))
    meanwhile = at + random.uniform(0.5, random.choice([dense_s, lasts]))
    match random.choice(["return", "return", "leave", "leave", "compact", "copies", "copies", "nothing"]):
        case "return":  # the others give partitions to it
            away_s = random.uniform(50.0, 150.0)
            yield Fault(meanwhile - away_s, "crash", worker, away_s)
        case "leave":
            yield Fault(meanwhile, random.choice(["cut", "freeze", "suspended", "stop"]), worker, 60.0, 1.0)
        case "compact":
            yield Compact(meanwhile + 5.0, "snapshots")
        case "copies":  # the job publishes some snapshots again, and only these remain
            yield Fault(meanwhile, "crash", "job", random.uniform(0.1, 2.0))
            yield Compact(meanwhile + random.uniform(3.0, 10.0), "snapshots")
