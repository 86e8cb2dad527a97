"""How long a changed rule takes: from its sending to the alerts of all states that break it, while no event comes.

Between two changes the rule is removed, so that each of the alerts is one that opens.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from bench.alerts.application import Limit
from bench.alerts.engines import ALERTS, ENGINES, SNAPSHOTS, TOPICS, AlertEngine
from bench.alerts.measures import WARM_CHANGES, RuleChanges
from bench.alerts.oracle import Transition, check, decode
from bench.alerts.rules import RuleWriter
from bench.alerts.running import RunningEngine
from bench.harness import topics
from bench.harness.figures import Figures, median, percentiles
from bench.harness.jobs import Job
from bench.harness.load import SensorReading, preload
from bench.harness.plan import Plan, Site
from bench.harness.progress import Show
from bench.harness.results import RunResult
from contracts.wire import Snapshot
from contracts.wire.window_key import window_key

MAXIMUM, STEPS = 1_000.0, 10_000
"""The temperatures of the keys: the maximum, and the number of different ones, evenly distributed."""
RULE = "too-hot"
BREAKS = 0.01
PATIENCE_S = 120.0
PAUSE_S = 0.3
COMMIT_S = 240.0


def temperature(number: int) -> float:
    """The temperature of a key."""
    return number * 7_919 % STEPS * MAXIMUM / STEPS


def threshold(change: int) -> float:
    """The limit of a change. Each is a little lower than the one before."""
    return MAXIMUM * (1 - BREAKS) - change * MAXIMUM / STEPS


class RuleChange(NamedTuple):
    """A change of the rule: the how many-th, and when it was sent, in seconds of the epoch."""

    number: int
    sent: float


class Opened(NamedTuple):
    """An alert that a change of the rule opened, and how long after it."""

    device: str
    number: int
    waited_s: float


class RuleChangeTimes:
    """Measures one engine at a time. Stateloop's worker has the snapshots from the beginning: no job runs."""

    def __init__(self, size: RuleChanges, plan: Plan, site: Site) -> None:
        self._size, self._plan, self._site = size, plan, site

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one engine. Raises RunFailedError."""
        size, boot, engine = self._size, self._site.boot, ENGINES[job.name]
        topics.renew(boot, TOPICS)
        preload(boot, engine.reads, self._load(engine), lambda sent: show(f"sent {sent:,} of {size.keys:,}", 0.0))
        name = f"{size.name}-{job.name}-{run}"
        changes, used = dict[int, RuleChange](), 0.0
        with (
            RunningEngine(engine, engine.processes[-1:], self._plan, self._site, name) as running,
            topics.Counter(boot, ALERTS) as counter,
        ):
            show("reading the states", 0.2)
            running.await_committed(size.keys, COMMIT_S)
            writer, expected = RuleWriter(boot), 0
            for number in range(WARM_CHANGES + size.changes):
                show(f"change {number + 1}", 0.3 + 0.6 * number / (WARM_CHANGES + size.changes))
                before, alerts = running.cpu_s(), len(self._breaking(number))
                at, version = writer.put(RULE, Limit(above=threshold(number)))
                changes[version] = RuleChange(number, at)
                expected += alerts
                self._await(running, counter, expected)
                used += running.cpu_s() - before if number >= WARM_CHANGES else 0.0
                writer.remove(RULE)
                expected += alerts
                self._await(running, counter, expected)
            memory = {"own_mb": running.own_mb(), "rss_mb": running.rss_mb()}
        show("checking every alert", 1.0)
        opened = self._opened(changes)
        report = check(
            (
                Transition(f"d{key}", one.number, "open")
                for one in changes.values()
                for key in self._breaking(one.number)
            ),
            (Transition(one.device, one.number, "open") for one in opened),
        )
        found = figures(one for one in opened if one.number >= WARM_CHANGES) | memory | {"cpu_s": used / size.changes}
        return RunResult(size.name, job.name, run, found, report, size=self._plan.size(size))

    def _await(self, running: RunningEngine, counter: topics.Counter, alerts: int) -> None:
        running.until(lambda: counter.count() >= alerts, "alerts", PATIENCE_S)
        running.wait(PAUSE_S)

    def _opened(self, changes: Mapping[int, RuleChange]) -> list[Opened]:
        """The alerts that opened, with the change of the rule that opened them."""
        records = topics.records(self._site.boot, ALERTS)
        found = ((at_ms / 1000, one) for at_ms, value in records for one in decode(value))
        return [
            Opened(one.transition.device, changes[one.rule_version].number, at - changes[one.rule_version].sent)
            for at, one in found
            if one.transition.status == "open"
        ]

    def _breaking(self, change: int) -> list[int]:
        return [key for key in range(self._size.keys) if temperature(key) >= threshold(change)]

    def _load(self, engine: AlertEngine) -> Iterator[tuple[str, bytes]]:
        now = datetime.fromtimestamp(time.time(), UTC)
        ts = now.isoformat(timespec="microseconds")
        for key in range(self._size.keys):
            if engine.reads != SNAPSHOTS:
                yield f"d{key}", SensorReading(f"d{key}", 1, ts, ts, temperature(key)).encode()
                continue
            state = {"events": 1, "temperature": temperature(key), "temperatures": [temperature(key)]}
            one = Snapshot(device_id=f"d{key}", first_seen=now, version=1, as_of=now, state=state)
            yield window_key(*one.window).decode(), one.encode()


def figures(opened: Iterable[Opened]) -> Figures:
    """Percentiles over the alerts of all changes; and over the changes, of the first alert and of the last."""
    waits = defaultdict[int, list[float]](list)
    for one in opened:
        waits[one.number].append(one.waited_s)
    lasts = [max(found) for found in waits.values()]
    return percentiles([one for found in waits.values() for one in found]) | {
        "first_ms": 1000 * median([min(found) for found in waits.values()]),
        "last_ms": 1000 * median(lasts),
        "slowest_ms": 1000 * max(lasts),
    }
