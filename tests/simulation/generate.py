"""Makes a script of a seed: the load, what is wrong with it, and the faults of the parts."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import orjson

from tests.simulation.api import FAULTS
from tests.simulation.application import APPLICATIONS
from tests.simulation.maintenance import maintained
from tests.simulation.overload import deferral, stream
from tests.simulation.script import (
    FORGED,
    Compact,
    Fault,
    Forged,
    FormerJob,
    Redrive,
    Row,
    Script,
    Sent,
    Tombstone,
    time_at,
)
from tests.simulation.spaced import spaced
from tests.simulation.states import EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.script import Step

LOAD_S, FAULTS_S = 2100.0, 2400.0
"""The times at which the load and the last fault end."""
DURATIONS_S = (1.0, 20.0, 60.0, 300.0)
LONGEST_RESTART_S = 100.0
"""The time after the last fault after which the present job has claimed the topics."""
REDRIVE_S = 2800.0
"""The time of a redrive after all faults."""
LONG_STORE_S = 120.0
"""The longest time that faults of the store and of sinks take together."""
LONG_S, HOUR_S = 1000.0, 3600.0
"""The times of a fault that outlasts the shortest windows, and of a step of a clock."""
HOSTILE = (None, b"", b"{", b"[]", b"{}", b'{"load": NaN}', b"\xff\xfe", b'{"device_id": 5}', b"null")
APIS = ("registry", "prices")
PARTS = (
    *("crash", "interrupted", "interrupted", "stop", "freeze", "suspended"),
    *("cut", "clock", "unacknowledged", "leaderless"),
)
DROPPING = (*PARTS, "leaderless", "unacknowledged")
"""The faults of parts that drop what they cannot write, and do it again."""
COUNTED = ("unacknowledged", "interrupted", "suspended")
"""The faults whose amount is a number of requests."""
SESSION_S = 11.0
"""A fault that outlasts the sessions of derive workers: others get their partitions."""


def script(seed: int) -> Script:
    """Return the script of a seed."""
    random = Random(seed)
    derivers = random.choice([0, 0, 0, 0, 0, 0, 1, 2])
    has_meeting = random.random() < (0.8 if derivers else 0.4)
    has_deferral = not derivers and random.random() < 0.25
    is_narrow = has_deferral or random.random() < (0.8 if has_meeting else 0.5)
    workers = random.choice([2, 2, 3] if has_meeting or has_deferral else [1, 1, 2, 3])
    partitions = random.choice([1, 2, 3, 4])
    application = random.choice([*APPLICATIONS])
    bursts = [random.uniform(1.0, LOAD_S) for _ in range(random.randint(1, 5))]
    steps = [*_load(random, bursts), *_forged(random, application)]
    sinks = random.choice([0, 0, 1, 2])
    if derivers:
        steps += [*_rows(random, bursts), *_unwritten(random, derivers, random.choice(bursts))]
    if has_deferral:
        steps += deferral(random, workers, random.choice(APIS), random.choice(bursts))
    if random.random() < (0.5 if has_deferral else 0.9):
        steps += _faults(random, workers, sinks, derivers, bursts)
    if has_meeting:
        steps += _meeting(random, workers, derivers, bursts)
    if random.random() < 0.3:
        steps += _compactions(random, derivers, bursts)
    if sinks and random.random() < 0.4:
        steps += _store_meeting(random, sinks, steps)
    if sinks and not derivers and random.random() < 0.4 and not any(isinstance(step, Compact) for step in steps):
        steps += _foreign_snapshots(random, [step for step in steps if isinstance(step, Sent)])
    if any(isinstance(step, Fault) and step.kind == "rebuild" for step in steps) and random.random() < 0.5:
        steps.append(FormerJob(random.uniform(FAULTS_S + LONGEST_RESTART_S, REDRIVE_S)))
    outages = [step for step in steps if isinstance(step, Fault) and step.part in APIS]
    steps += [*_redrives(random, outages), *_refused_deliveries(random, derivers, bursts)]
    made = Script(
        seed,
        tuple(sorted(steps, key=lambda step: step.at)),
        application,
        partitions,
        workers,
        sinks,
        derivers,
        batch_s=random.choice([5.0, 30.0, 60.0, 300.0]),
        backlog=random.choice([20, 1000, 1000]),
        unfinished=random.choice([1, 4, 12]) if is_narrow else 20_000,
        deferred=random.choice([1, 3, 1_000_000]) if is_narrow else 1_000_000,
        uncommitted=random.choice([4, 16, 1_000_000, 1_000_000]) if is_narrow else 1_000_000,
        failures=random.choice([4, 4, 1000] if has_meeting or has_deferral else [4, 1000, 1000]),
        in_flight=random.choice([1, 3, 3]) if is_narrow else random.choice([1, 1000]),
        slowest_s=random.choice([0.2, 1.5, 1.5]),
        sink_batch=random.choice([2, 1000, 1000]),
        refused=random.choice([0, 0, 2, 3]) if sinks else 0,
    )
    return maintained(spaced(made))


def _time(random: Random, bursts: list[float], until: float = LOAD_S) -> float:
    """A time at which something happens: mostly in a burst, because parts break under load."""
    if random.random() < 0.7:
        return min(until, random.choice(bursts) + random.uniform(0.0, 3.0))
    return random.uniform(1.0, until)


def _load(random: Random, bursts: list[float]) -> Iterator[Step]:
    """Events of some devices in some windows; some come twice, late, disordered, or from a clock that is wrong."""
    devices = [f"d{number}" for number in range(random.randint(1, 5))]
    plates = [f"p{number}" for number in range(random.choice([1, 2, 2, 3, 6]))]
    is_hot = random.random() < 0.5
    starts = [0.0, *(random.uniform(0.0, LOAD_S) for _ in range(random.randint(0, 2)))]
    for number in range(random.randint(3, 24)):
        at = _time(random, bursts)
        device = devices[0] if is_hot and random.random() < 0.5 else random.choice(devices)
        first_seen = max([start for start in starts if start <= at], default=0.0)
        sent = Sent(
            at,
            device,
            f"e{number}",
            first_seen=random.choice([first_seen, first_seen, 0.0]),
            ts=max(0.0, at - random.choice([0.0, 0.0, random.uniform(0.0, 120.0)])),
            plate=random.choice([*plates, None]),
            load=random.choice([None, random.randint(-5, 100)]),
        )
        yield from _with_defects(random, sent)


def _with_defects(random: Random, sent: Sent) -> Iterator[Sent]:
    """The event, perhaps in copies, too late, or with an impossible time."""
    defect = random.random()
    values = vars(sent)
    if defect < 0.1:
        for _ in range(random.choice([1, 1, 10])):
            yield Sent(**values | {"at": random.uniform(sent.at, LOAD_S)})
    elif defect < 0.14:
        yield Sent(**values | {"event": f"{sent.event}-late", "first_seen": -random.uniform(1.0, 4.0) * HOUR_S})
    elif defect < 0.18:
        ahead = random.choice([45.0, random.uniform(70.0, 1200.0), 2 * HOUR_S, 24 * 3650 * HOUR_S])
        yield Sent(**values | {"event": f"{sent.event}-ahead", random.choice(["first_seen", "ts"]): sent.at + ahead})
    yield sent


def _forged(random: Random, application: str) -> Iterator[Forged]:
    """Records that are no valid events or answers, or events of one device with the key of another."""
    for number in range(random.choice([0, 0, 1, 3])):
        at, topic = random.uniform(1.0, LOAD_S), random.choice(["events", "feedback"])
        topic = topic if APPLICATIONS[application].enrichments else "events"
        key = random.choice([None, b"d0", b"other"])
        value = random.choice(HOSTILE)
        if topic == "feedback" and random.random() < 0.7:
            key, value = random.choice([key, b"d0"]), _forged_answer(random, at)
        elif topic == "events" and random.random() < 0.3:
            key, value = random.choice([None, b"d1", b"d1"]), _misplaced_event(number, at)
        yield Forged(at, topic, key, value)


def _misplaced_event(number: int, at: float) -> bytes:
    """A valid event of d0."""
    time = time_at(at).isoformat()
    event = {"device_id": "d0", "event_id": f"misplaced-{number}", "first_seen": time, "ts": time, "load": 7}
    return orjson.dumps(event)


def _forged_answer(random: Random, at: float) -> bytes:
    """An answer that no worker gave: of an unknown enrichment, of a later epoch, or of an old version.

    One of the present epoch and a large version wins over true ones. Its time is far from its stamp: so it is replaced.
    """
    present = (EPOCH, at - 2 * HOUR_S), (EPOCH, at + HOUR_S)
    epoch, given_at = random.choice([(0, at), *present, *present, (EPOCH + 1, at)])
    answer = {
        "device_id": "d0",
        "first_seen": time_at(0.0).isoformat(),
        "enrichment": random.choice(["owner", "owner", "unknown"]),
        "epoch": epoch,
        "version": random.choice([1, 7, 1000]),
        "status": "result",
        "ts": time_at(given_at).isoformat(),
        "fingerprint": FORGED,
        "result": {"owner": {"name": "nobody's"}},
    }
    return orjson.dumps(answer)


def _rows(random: Random, bursts: list[float]) -> Iterator[Row]:
    """Limits that are put, replaced and removed; some are rejected, and the condition of some raises."""
    raising = random.choice([0.08, 0.08, 0.4])
    for _ in range(random.randint(1, 8)):
        at, name, kind = random.choice([0.5, _time(random, bursts)]), f"r{random.randint(0, 2)}", random.random()
        if kind < 0.2:
            yield Row(at, name)
        elif kind < 0.27:
            yield Row(at, name, random.choice(['{"high": "much"}', "[]", '{"high": 1, "low": 0, "hold": -1}']))
        else:
            high = -1 if kind < 0.27 + raising else random.choice([1, 20, 50])
            limit = {
                "keys": random.choice(["*", "*", "d*", "d0", "d[12]"]),
                "high": high,
                "low": random.choice([0, high, high // 2]),
                "hold": random.choice([0, 0, 2, 60, 300]),
            }
            yield Row(at, name, orjson.dumps(limit).decode())


def _unwritten(random: Random, derivers: int, at: float) -> Iterator[Step]:
    """Rules that may change while derive workers can write nothing, and events of another device meanwhile."""
    if random.random() < 0.65:
        return
    at, lasts = at + random.uniform(11.0, 40.0), random.choice([7.0, 20.0, 60.0])
    yield Sent(at - 10.0, "d0", "u0", at - 11.0, at - 10.0, "p1", 60)
    for number in range(derivers):
        yield Fault(at, "leaderless", f"derive-{number}", lasts)
    for _ in range(random.randint(1, 3)):
        limit = {"high": random.choice([-1, 1, 20, 50]), "low": 0, "hold": random.choice([0, 0, 60])}
        moment = at + random.uniform(0.0, min(lasts, 10.0))
        yield Row(moment, f"r{random.randint(0, 2)}", orjson.dumps(limit).decode())
    for number in range(random.choice([0, 0, 3])):
        moment = at + random.uniform(0.0, lasts)
        yield Sent(moment, "d5", f"u{number + 1}", at - 11.0, moment, "p2", random.randint(-5, 100))


def _faults(random: Random, workers: int, sinks: int, derivers: int, bursts: list[float]) -> Iterator[Fault]:
    """Faults, each perhaps with a second one of the same part while it lasts."""
    counts = {"worker": workers, "sink": sinks, "derive": derivers, "webhook": derivers}
    parts = ["job", *(f"{kind}-{n}" for kind, count in counts.items() for n in range(count))]
    others = [*APIS, "broker", *["store"][:sinks], *["pager"][:derivers]]
    for _ in range(random.randint(1, 4)):
        lasts = random.choice(DURATIONS_S) * random.uniform(0.3, 1.0)
        if random.random() < 0.1:
            lasts = LONG_S
        at = _time(random, bursts, FAULTS_S - lasts)
        part = random.choice([random.choice(parts), random.choice(others)])
        if part in others:
            yield _outage(random, at, part, lasts)
            continue
        yield _process_fault(random, at, part, lasts)
        if random.random() < 0.4:
            yield _process_fault(random, at + random.random() * min(lasts, 10.0), part, random.uniform(0.5, 20.0))


def _meeting(random: Random, workers: int, derivers: int, bursts: list[float]) -> Iterator[Step]:
    """Faults of several parts at one time, while events come: an outage, of members of a group, and a rebuild.

    Each part has code for each of them. What one does while another lasts is where that code meets.
    """
    at = max(1.0, min(random.choice(bursts) + random.uniform(-5.0, 2.0), FAULTS_S - DURATIONS_S[-1]))
    members = [f"worker-{number}" for number in range(workers)] + 3 * [f"derive-{number}" for number in range(derivers)]
    members += [f"webhook-{number}" for number in range(derivers)]
    apis, lasts = [*APIS, *["pager"][:derivers]], random.choice([10.0, 60.0, 180.0])
    if random.random() < 0.8:
        kind = random.choice(["hang", "down", "unavailable", "error", "throttled"])
        yield Fault(at, kind, random.choice(apis), lasts, random.choice([0.3, 1.0, 1.0]))
        if not derivers and random.random() < 0.5:
            yield Compact(at + random.uniform(2.0, lasts), "snapshots")
    storm = list(random.choice([_storm, stream])(random, at, random.choice([5.0, 30.0, lasts])))
    yield from storm
    if derivers > 1 and random.random() < 0.5:
        yield from _fence(random, min(storm, key=lambda step: step.at))
    for _ in range(random.randint(0, 3)):
        part, lasts = random.choice(members), random.choice([random.uniform(0.5, 60.0), SESSION_S, 2 * SESSION_S])
        kind = random.choice(DROPPING if part.startswith("derive") else PARTS)
        if kind != "clock":
            amount = float(random.randint(1, 4)) if kind in COUNTED else 1.0
            yield Fault(_moment(random, storm), kind, part, lasts, amount)
    if random.random() < 0.4:
        kind = random.choice(["rebuild", "crash", "interrupted"])
        yield Fault(_moment(random, storm), kind, "job", random.uniform(0.5, 20.0), float(random.randint(1, 9)))
    if derivers and random.random() < 0.7:
        yield from _rows(random, [step.at for step in storm])


def _storm(random: Random, at: float, lasts: float) -> Iterator[Sent]:
    """Many events of few devices: at once, and until after the faults, with inputs that come back."""
    devices = [f"d{number}" for number in range(random.choice([1, 1, 2, 3, 6]))]
    plates, first_seen = random.choice([("p1", "p2"), ("p1", "p5", None)]), max(0.0, at - random.uniform(0.0, 200.0))
    dense_s = random.choice([0.1, 0.5, 3.0])
    for number in range(random.randint(4, 16)):
        moment = at + random.uniform(0.0, random.choice([dense_s, dense_s, lasts + 5.0]))
        plate, load = random.choice(plates), random.choice([None, random.randint(-5, 100)])
        yield Sent(moment, random.choice(devices), f"s{number}", first_seen, moment, plate, load)


def _fence(random: Random, first: Sent) -> Iterator[Step]:
    """A derive worker is frozen with events that it has read, until another has their partition and more of them."""
    lasts, kind = random.uniform(1.3, 2.5) * SESSION_S, random.choice(["freeze", "suspended", "cut"])
    yield Row(max(0.5, first.at - 5.0), "r0", '{"keys": "*", "high": 20, "low": 20, "hold": 0}')
    part, after_s = random.choice(["derive-0", "derive-1"]), random.uniform(0.02, 0.15)
    yield Fault(first.at + after_s, kind, part, lasts, float(random.randint(1, 4)))
    times = [random.uniform(0.0, 0.12) for _ in range(8)] + [random.uniform(0.9 * SESSION_S, lasts) for _ in range(3)]
    for number, after in enumerate(times):
        moment = first.at + after
        yield replace(first, at=moment, ts=moment, event=f"f{number}", load=random.randint(10, 60))


def _moment(random: Random, storm: list[Sent]) -> float:
    """A time at which a part works on an event: just after it, or some seconds later."""
    return random.choice(storm).at + random.uniform(0.0, random.choice([0.1, 0.5, 10.0]))


def _compactions(random: Random, derivers: int, bursts: list[float]) -> Iterator[Compact]:
    """Compactions under load. Derive workers need each snapshot, so theirs are of what they write."""
    for _ in range(random.randint(1, 3)):
        yield Compact(_time(random, bursts) + random.uniform(0.0, 20.0), "derived" if derivers else "snapshots")


def _store_meeting(random: Random, sinks: int, steps: list[Step]) -> Iterator[Fault]:
    """Faults of the store and of the sinks at one time: under load, or after it, when no record shows what happened."""
    load = [step.at for step in steps if isinstance(step, Sent)]
    at = random.choice(load) if random.random() < 0.6 else max(load) + random.uniform(5.0, 300.0)
    at = min(at, FAULTS_S - LONG_STORE_S)
    for _ in range(random.randint(0, 2)):
        part, lasts = f"sink-{random.randrange(sinks)}", random.uniform(0.5, 60.0)
        yield _process_fault(random, at + random.uniform(0.0, 15.0), part, lasts)
    for _ in range(random.randint(0, 2)):
        begins = at + random.choice([random.uniform(0.0, 2.0), random.uniform(0.0, 60.0)])
        yield _outage(random, begins, "store", random.choice([3.0, 20.0, 60.0]))


def _foreign_snapshots(random: Random, load: list[Sent]) -> Iterator[Step]:
    """Windows that somebody removes from the readers of snapshots, and records that are no snapshots.

    A compacted topic has no former windows of a removed one, so no compaction happens.
    """
    for _ in range(random.choice([1, 2, 4])):
        sent = random.choice(load)
        start = sent.first_seen if random.random() < 0.8 else 0.0
        at = sent.at + random.choice([0.1, 5.0, random.uniform(0.0, 600.0)])
        yield Tombstone(at, sent.device, start)
        if random.random() < 0.5:  # so that a write has what was before it, too
            yield _outage(random, random.choice([max(1.0, sent.at - 1.0), at]), "store", random.choice([3.0, 20.0]))
    for _ in range(random.choice([0, 0, 1, 2])):
        yield Forged(random.choice(load).at + random.uniform(0.0, 5.0), "snapshots", b"other", random.choice(HOSTILE))


def _redrives(random: Random, outages: list[Fault]) -> Iterator[Redrive]:
    """Redrives at any time, after an outage, or after all faults."""
    if random.random() > (0.5 if outages else 0.1):
        return
    for _ in range(random.randint(1, 2)):
        ends = [min(fault.at + fault.lasts + random.uniform(1.0, 150.0), REDRIVE_S) for fault in outages]
        yield Redrive(random.choice([random.uniform(60.0, REDRIVE_S), REDRIVE_S, *ends]))


def _refused_deliveries(random: Random, derivers: int, bursts: list[float]) -> Iterator[Step]:
    """A webhook that refuses, or fails, for a while, and a redrive afterwards."""
    if not derivers or random.random() > 0.15:
        return
    at, kind = max(1.0, random.choice(bursts) - 5.0 * random.random()), random.choice(["refused", "refused", "down"])
    yield Fault(at, kind, "pager", random.choice(DURATIONS_S[1:]), random.choice([0.3, 1.0]))
    yield Redrive(random.uniform(FAULTS_S, REDRIVE_S))


def _outage(random: Random, at: float, part: str, lasts: float) -> Fault:
    if part == "broker":
        return Fault(at, "away", part, lasts)
    if part == "store":
        return Fault(at, random.choice(["away", "hang", "unacknowledged", "loss", "rollback"]), part, lasts)
    return Fault(at, random.choice(FAULTS), part, lasts, random.choice([0.3, 1.0]))


def _process_fault(random: Random, at: float, part: str, lasts: float) -> Fault:
    """A fault of a process. The clock of a job is never behind: it would refuse valid events."""
    kinds = DROPPING if part.startswith("derive") else PARTS
    kind = random.choice((*DROPPING, "lag", "lag", "rebuild", "rebuild") if part == "job" else kinds)
    match kind:
        case "lag":
            return Fault(at, kind, part, random.choice([lasts, LONG_S]), random.randint(0, 3))
        case "clock":
            ahead_s = HOUR_S if part == "job" else random.choice([-HOUR_S, HOUR_S])
            return Fault(at, kind, part, lasts, ahead_s)
        case "unacknowledged":
            return Fault(at, kind, part, 0.0, random.randint(1, 2))
        case "interrupted" | "suspended":
            return Fault(at, kind, part, max(lasts, 1.0), random.randint(1, 6))
    return Fault(at, kind, part, lasts)
