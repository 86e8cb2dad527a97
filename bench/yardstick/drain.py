"""Drain: how fast a job works off a topic that was filled before it started."""

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from bench.harness import topics
from bench.harness.figures import Figures, largest_gap, rate, within
from bench.harness.load import SensorReading, preload, readings
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.process import RunningJob
from bench.harness.results import OracleReport
from bench.harness.topics import EVENTS, FEEDBACK, SNAPSHOTS
from bench.yardstick.jobs import STATE_JOBS, StateJob
from bench.yardstick.oracle import Oracle

PATIENCE_S = 240.0
"""How long a job may publish nothing."""
FRESH_S = 40 * 60.0
"""The age of the events after which they are sent anew: a state expires an hour after its device was first seen."""


@dataclass(frozen=True)
class DrainMeasure(Measure[StateJob]):
    """Events that are all there before a job starts: measured is how fast it drains them."""

    events: int
    devices: int
    jobs = STATE_JOBS

    def __str__(self) -> str:
        return f"{self.events:,} events of {self.devices:,} devices"

    @property
    def skipped(self) -> int:
        """How many of its snapshots do not count towards the rate: a job is still warming up."""
        return self.events // 10

    @override
    def meter(self, site: Site) -> "Drain":
        return Drain(self, site)


class Drain(Meter[StateJob]):
    """Fills the topic; every job then reads the same records."""

    def __init__(self, backlog: DrainMeasure, site: Site) -> None:
        self._backlog, self._site = backlog, site
        self._filled_at = 0.0
        self._oracle: Oracle | None = None

    @override
    def measure(self, job: StateJob, name: str, show: Show) -> tuple[Figures, OracleReport]:
        oracle, boot = self._filled(show), self._site.boot
        topics.renew(boot, SNAPSHOTS)
        with RunningJob(job, self._site, name) as running:
            with topics.Counter(boot, SNAPSHOTS) as counter:
                for count in running.counts(counter.count, SNAPSHOTS, PATIENCE_S):
                    show(f"{count:,} of {self._backlog.events:,} snapshots" if count else "starting")
                    if count >= self._backlog.events:
                        break
            running.wait(self._site.settle_s)
            used, commits = running.cpu_s(), running.commits(job.commits)
        show("checking every snapshot")
        times = array("d")
        report = oracle.check(stamped_values(boot, SNAPSHOTS, times), job)
        return self._figures(sorted(times), running.began, commits, used), report

    def _filled(self, show: Show) -> Oracle:
        """Return the oracle of the events in the topic; send them if they are missing or too old."""
        if self._oracle and time.time() - self._filled_at < FRESH_S:
            return self._oracle
        self._oracle, self._filled_at = None, time.time()  # one at a time: it is large
        topics.renew(self._site.boot, EVENTS, FEEDBACK, SNAPSHOTS)
        preload(self._site.boot, EVENTS, ((reading.device, reading.encode()) for reading in self._readings()), show)
        show("computing what each snapshot must be")
        self._oracle = Oracle(self._readings())
        return self._oracle

    def _readings(self) -> Iterator[SensorReading]:
        return readings(self._backlog.events, self._backlog.devices, self._filled_at)

    def _figures(self, times: list[float], began: float, commits: list[float], used: float) -> Figures:
        return {
            "records_per_s": rate(times[: self._backlog.events], self._backlog.skipped),
            "cpu_s": used,
            "per_cpu_s": self._backlog.events / used,
            "gap_ms": 1000 * largest_gap(times),
            "boundaries": within(commits, times[0], times[-1]),
            "start_s": times[0] - began,
        }


def stamped_values(boot: str, topic: str, times: "array[float]") -> Iterator[bytes]:
    """The values of a topic's records; adds their times, in seconds of the epoch, to `times`."""
    for at, value in topics.records(boot, topic):
        times.append(at)
        yield value
