"""Drain: how fast a job works off a topic that was filled before it started."""

import time
from array import array
from collections.abc import Iterator

from bench.harness import topics
from bench.harness.figures import Figures, largest_gap, rate, within
from bench.harness.jobs import Job
from bench.harness.load import EVENTS, SensorReading, preload, readings
from bench.harness.oracle import Oracle
from bench.harness.plan import BacklogPlan, Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.results import RunResult

LOOK_S = 0.5
FIRST_S = 120.0
"""How long a job may take to give its first snapshot,"""
NEXT_S = 45.0
"""and then the next one."""
FRESH_S = 40 * 60.0
"""The age of the events after which they are sent anew: a state expires an hour after its device was first seen."""


class Drain:
    """Fills the topic; every job then reads the same records."""

    def __init__(self, backlog: BacklogPlan, plan: Plan, site: Site) -> None:
        self._backlog, self._plan, self._site = backlog, plan, site
        self._filled_at = 0.0
        self._oracle: Oracle | None = None

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one job. Raises RunFailedError."""
        oracle = self._filled(show)
        topics.renew(self._site.boot, topics.OUTPUTS)
        with RunningJob(job, self._plan, self._site, f"{self._backlog.name}-{job.name}-{run}") as running:
            self._await(running, show)
            time.sleep(self._plan.settle_s)
            running.require_running()
            used, commits = running.group.cpu_s(), running.commits()
        show("checking every snapshot", 1.0)
        times = array("d")
        report = oracle.check(stamped_values(self._site.boot, "snapshots", times), job)
        figures = self._figures(sorted(times), running.began, commits, used)
        return RunResult(self._backlog.name, job.name, run, figures, report, size=self._plan.size(self._backlog))

    def _filled(self, show: Show) -> Oracle:
        """Return the oracle of the events in the topic; send them if they are missing or too old."""
        if self._oracle and time.time() - self._filled_at < FRESH_S:
            return self._oracle
        self._oracle, self._filled_at = None, time.time()  # one at a time: it is large
        topics.renew(self._site.boot, (*topics.INPUTS, *topics.OUTPUTS))
        events = self._backlog.events
        load = ((reading.device, reading.encode()) for reading in self._readings())
        preload(self._site.boot, EVENTS, load, lambda sent: show(f"sent {sent:,} of {events:,} events", 0.0))
        show("computing what each snapshot must be", 0.0)
        self._oracle = Oracle(self._readings())
        return self._oracle

    def _readings(self) -> Iterator[SensorReading]:
        return readings(self._backlog.events, self._backlog.devices, self._filled_at)

    def _await(self, running: RunningJob, show: Show) -> None:
        """Return when there are as many snapshots as events. Raises JobExitedError, JobStalledError."""
        events = self._backlog.events
        with topics.Counter(self._site.boot, "snapshots") as counter:
            last, since = 0, time.monotonic()
            while last < events:
                running.require_running()
                patience = NEXT_S if last else FIRST_S
                if time.monotonic() - since > patience:
                    raise running.stalled(f"more snapshots than {last:,}", patience)
                time.sleep(LOOK_S)
                now = counter.count()
                show(f"{now:,} of {events:,} snapshots" if now else "starting", now / events)
                if now > last:
                    last, since = now, time.monotonic()

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
    for stamp, value in topics.records(boot, topic):
        times.append(stamp / 1000)
        yield value
