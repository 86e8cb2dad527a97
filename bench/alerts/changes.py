"""How long a changed rule takes: from its sending to the alerts of all states that break it, while no event comes.

Between two changes the rule is removed, so that each of the alerts is one that opens.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from typing_extensions import override

from bench.alerts.application import Limit
from bench.alerts.jobs import ALERT_JOBS, ALERTS, TOPICS, AlertJob, RunningAlertJob
from bench.alerts.oracle import Transition, check, decode
from bench.alerts.rules import RuleWriter
from bench.harness import topics
from bench.harness.figures import Figures, median, percentiles
from bench.harness.load import SensorReading, preload
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.results import OracleReport
from bench.harness.topics import SNAPSHOTS
from contracts.wire import Snapshot
from contracts.wire.window_key import window_key

MAXIMUM, STEPS = 1_000.0, 10_000
"""The temperatures of the keys: the maximum, and the number of different ones, evenly distributed."""
RULE = "too-hot"
BREAKS = 0.01
WARM_CHANGES = 2
"""The first changes of a rule, which are not measured."""
PATIENCE_S = 120.0
PAUSE_S = 0.3
COMMIT_S = 240.0


@dataclass(frozen=True)
class RuleChanges(Measure[AlertJob]):
    """A rule of all keys that is put and removed again and again, while no event comes: when its alerts are there.

    One state in a hundred breaks the rule.
    """

    keys: int
    changes: int
    jobs = ALERT_JOBS

    def __str__(self) -> str:
        return f"{self.keys:,} keys, {self.changes} changes of a rule that 1 in 100 breaks"

    @override
    def meter(self, site: Site) -> "RuleChangeTimes":
        return RuleChangeTimes(self, site)


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


class RuleChangeTimes(Meter[AlertJob]):
    """Measures one job at a time. Stateloop's worker has the snapshots from the beginning: no job writes them."""

    def __init__(self, size: RuleChanges, site: Site) -> None:
        self._size, self._site = size, site

    @override
    def measure(self, job: AlertJob, name: str, show: Show) -> tuple[Figures, OracleReport]:
        size, boot, writer = self._size, self._site.boot, RuleWriter(self._site.boot)
        topics.renew(boot, *TOPICS)
        preload(boot, job.reads, self._load(job), show)
        changes, used, expected = dict[int, RuleChange](), 0.0, 0
        with (
            RunningAlertJob(job, self._site, name, with_states=False) as running,
            topics.Counter(boot, ALERTS) as counter,
            topics.Commits(boot, name, job.reads) as commits,
        ):
            show("reading the states")
            running.until(lambda: commits.count() >= size.keys, "commit of all states", COMMIT_S)
            for number in range(WARM_CHANGES + size.changes):
                show(f"change {number + 1} of {WARM_CHANGES + size.changes}")
                before, alerts = running.cpu_s(), len(self._breaking(number))
                at, version = writer.put(RULE, Limit(above=threshold(number)))
                changes[version] = RuleChange(number, at)
                self._await(running, counter, expected + alerts)
                used += running.cpu_s() - before if number >= WARM_CHANGES else 0.0
                writer.remove(RULE)
                expected += 2 * alerts
                self._await(running, counter, expected)
            memory = {"own_mb": running.group.own_mb(), "rss_mb": running.group.rss_mb()}
        show("checking every alert")
        opened = self._opened(changes)
        must = ((change.number, key) for change in changes.values() for key in self._breaking(change.number))
        report = check(
            (Transition(f"d{key}", number, "open") for number, key in must),
            (Transition(alert.device, alert.number, "open") for alert in opened),
        )
        measured = figures(alert for alert in opened if alert.number >= WARM_CHANGES)
        return measured | memory | {"cpu_s": used / size.changes}, report

    def _await(self, running: RunningAlertJob, counter: topics.Counter, alerts: int) -> None:
        running.until(lambda: counter.count() >= alerts, "alerts", PATIENCE_S)
        running.wait(PAUSE_S)

    def _opened(self, changes: Mapping[int, RuleChange]) -> list[Opened]:
        """The alerts that opened, with the change of the rule that opened them."""
        records = topics.records(self._site.boot, ALERTS)
        alerts = ((at, alert) for at, value in records for alert in decode(value))
        return [
            Opened(alert.transition.device, changes[alert.rule_version].number, at - changes[alert.rule_version].sent)
            for at, alert in alerts
            if alert.transition.status == "open"
        ]

    def _breaking(self, change: int) -> list[int]:
        return [key for key in range(self._size.keys) if temperature(key) >= threshold(change)]

    def _load(self, job: AlertJob) -> Iterator[tuple[str, bytes]]:
        now = datetime.fromtimestamp(time.time(), UTC)
        ts = now.isoformat(timespec="microseconds")
        for key in range(self._size.keys):
            if job.reads != SNAPSHOTS:
                yield f"d{key}", SensorReading(f"d{key}", 1, ts, ts, temperature(key)).encode()
                continue
            state = {"events": 1, "temperature": temperature(key), "temperatures": [temperature(key)]}
            snapshot = Snapshot(device_id=f"d{key}", first_seen=now, version=1, as_of=now, state=state)
            yield window_key(*snapshot.window).decode(), snapshot.encode()


def figures(opened: Iterable[Opened]) -> Figures:
    """Percentiles over the alerts of all changes; and over the changes, of the first alert and of the last."""
    waits = defaultdict[int, list[float]](list)
    for alert in opened:
        waits[alert.number].append(alert.waited_s)
    lasts = [max(times) for times in waits.values()]
    return percentiles([wait for times in waits.values() for wait in times]) | {
        "first_ms": 1000 * median([min(times) for times in waits.values()]),
        "last_ms": 1000 * median(lasts),
        "slowest_ms": 1000 * max(lasts),
    }
