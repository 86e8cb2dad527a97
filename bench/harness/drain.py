"""Drain: how fast a job works off a topic that was filled before it started."""

import time
from collections.abc import Iterator

from bench.harness import topics
from bench.harness.figures import Figures, largest_gap, rate, within
from bench.harness.jobs import Job
from bench.harness.load import Reading, preload, readings
from bench.harness.oracle import Oracle
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.report import Result

MEASURE = "drain"
LOOK_S = 0.5
FIRST_S = 120.0
"""How long a job may take to give its first snapshot,"""
NEXT_S = 45.0
"""and then the next one."""


class Drain:
    """Fills the topic once; every job then reads the same records."""

    def __init__(self, plan: Plan, site: Site) -> None:
        self._plan, self._site = plan, site
        self._ends = time.time()
        self.oracle = Oracle(self._readings())

    def fill(self, show: Show) -> None:
        """Send the events."""
        topics.renew(self._site.boot, topics.INPUTS)
        events = self._plan.events
        preload(self._site.boot, self._readings(), lambda sent: show("sending the events", sent / events))

    def measure(self, job: Job, run: int, show: Show) -> list[Result]:
        """One run of one job. Raises RunFailed."""
        topics.renew(self._site.boot, topics.OUTPUTS)
        with RunningJob(job, self._plan, self._site, f"{MEASURE}-{job.name}-{run}") as running:
            self._await(running, show)
            time.sleep(self._plan.settle_s)
            running.require_life()
            used, commits = running.group.cpu_s(), running.commits()
        show("checking every snapshot", 1.0)
        times: list[float] = []
        verdict = self.oracle.check(_noting(self._site.boot, times), job)
        figures = self._figures(sorted(times), running.began, commits) | {"cpu_s": used}
        return [Result(MEASURE, job.name, run, figures, verdict)]

    def _readings(self) -> Iterator[Reading]:
        return readings(self._plan.events, self._plan.devices, self._ends)

    def _await(self, running: RunningJob, show: Show) -> None:
        """Return when there are as many snapshots as events. Raises JobEnded, JobStalled."""
        with topics.Counter(self._site.boot, "snapshots") as counter:
            last, since = 0, time.monotonic()
            while last < self._plan.events:
                running.require_life()
                patience = NEXT_S if last else FIRST_S
                if time.monotonic() - since > patience:
                    raise running.stalled(f"more snapshots than {last:,}", patience)
                time.sleep(LOOK_S)
                now = counter.count()
                show(f"{now:,} of {self._plan.events:,} snapshots" if now else "starting", now / self._plan.events)
                if now > last:
                    last, since = now, time.monotonic()

    def _figures(self, times: list[float], began: float, commits: list[float]) -> Figures:
        return {
            "records_per_s": rate(times[: self._plan.events], self._plan.skipped),
            "gap_ms": 1000 * largest_gap(times),
            "boundaries": within(commits, times[0], times[-1]),
            "start_s": times[0] - began,
        }


def _noting(boot: str, times: list[float]) -> Iterator[bytes]:
    for stamp, value in topics.records(boot, "snapshots"):
        times.append(stamp / 1000)
        yield value
