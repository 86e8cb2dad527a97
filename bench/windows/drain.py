"""How fast a job counts the events of a topic that was filled before it started, without the cost of the start.

Each job counts a long backlog and a short one, from an empty state. The figures are the difference in events over the
difference in seconds. So they mean the same for a job that publishes a count for each event, and for one that publishes
nothing until a window, or the whole backlog, is over.
"""

import time
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from bench.harness import topics
from bench.harness.drain import stamped_values
from bench.harness.figures import Figures
from bench.harness.jobs import Job
from bench.harness.load import EVENTS, SensorReading, preload_stamped
from bench.harness.oracle import OracleReport
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.results import RunResult
from bench.windows.engines import WindowEngine
from bench.windows.measures import HOUR_S, OPEN_HOURS, WindowCounts
from bench.windows.oracle import WindowOracle

LONG, SHORT = "long", "short"
MADE = (EVENTS, "feedback", "snapshots", "dead_letters")
LOOK_S = 0.5
PATIENCE_S = 240.0
"""How long a job may publish nothing."""


@dataclass(frozen=True)
class Drained:
    """The time and CPU of a job from its start to its last count, and the report on its counts."""

    seconds: float
    cpu_s: float
    report: OracleReport


class WindowDrain:
    """Fills the topics once; every job then counts the same events."""

    def __init__(self, engines: Mapping[str, WindowEngine], counts: WindowCounts, plan: Plan, site: Site) -> None:
        """`engines` has those that are measured, by the names of their jobs."""
        self._counts, self._engines, self._plan, self._site = counts, engines, plan, site
        self._end = 0.0
        self._oracles: dict[str, WindowOracle] = {}

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one job. Raises RunFailedError."""
        if not self._oracles:
            self._end = time.time() // HOUR_S * HOUR_S - OPEN_HOURS * HOUR_S
            self._oracles = {backlog: self._filled(backlog, show) for backlog in (SHORT, LONG)}
        engine, name = replace(self._engines[job.name], job=job), f"{self._counts.name}-{job.name}-{run}"
        short = self._drain(engine, SHORT, f"{name}-{SHORT}", show)
        long = self._drain(engine, LONG, f"{name}-{LONG}", show)
        report = long.report if short.report.right else short.report
        found = figures(self._counts, short, long)
        return RunResult(self._counts.name, job.name, run, found, report, size=self._plan.size(self._counts))

    def _filled(self, backlog: str, show: Show) -> WindowOracle:
        """Return the oracle of a backlog; send its events, stamped with their times."""
        prefixed = [f"{backlog}.{name}" for name in MADE]
        topics.renew(self._site.boot, tuple(prefixed))
        load = ((one.device, one.encode(), _milliseconds(one)) for one in self._readings(backlog))
        events = self._events(backlog)
        preload_stamped(
            self._site.boot, prefixed[0], load, lambda sent: show(f"sent {sent:,} of {events:,} events", 0.0)
        )
        show("computing what each count must be", 0.0)
        return WindowOracle(self._readings(backlog))

    def _readings(self, backlog: str) -> Iterator[SensorReading]:
        """Both begin with the same whole hour."""
        return islice(self._counts.readings(self._end), self._events(backlog))

    def _events(self, backlog: str) -> int:
        return self._counts.short_events if backlog == SHORT else self._counts.events

    def _drain(self, engine: WindowEngine, backlog: str, name: str, show: Show) -> Drained:
        """Let a job count a backlog. Raises JobExitedError, JobStalledError."""
        oracle, output = self._oracles[backlog], f"{backlog}.snapshots"
        topics.renew(self._site.boot, (output,))
        with RunningJob(engine.job, self._plan, self._site, name, {"backlog": backlog}) as running:
            samples = self._follow(running, output, oracle.least(engine.emit), show)
        show("checking every count", 1.0)
        times = array("d")
        report = oracle.check(stamped_values(self._site.boot, output, times), engine)
        ended = max(times)
        used = next((cpu_s for at, cpu_s in samples if at >= ended), samples[-1][1])
        return Drained(ended - running.began, used, report)

    def _follow(self, running: RunningJob, output: str, least: int, show: Show) -> list[tuple[float, float]]:
        """Wait for the last count, and for duplicates; gives times and the CPU seconds used until then.

        Raises JobExitedError, JobStalledError.
        """
        samples, published, since = list[tuple[float, float]](), 0, time.monotonic()
        with topics.Counter(self._site.boot, output) as counter:
            while published < least or time.monotonic() - since < self._plan.settle_s:
                running.require_running()
                if time.monotonic() - since > PATIENCE_S:
                    raise running.stalled(f"more counts than {published:,}", PATIENCE_S)
                time.sleep(LOOK_S)
                samples.append((time.time(), running.group.cpu_s()))
                now = counter.count()
                show(f"{now:,} of {least:,} counts" if now else "starting", min(1.0, now / least))
                if now > published:
                    published, since = now, time.monotonic()
        return samples


def figures(counts: WindowCounts, short: Drained, long: Drained) -> Figures:
    """The cost of the events that only the long backlog has.

    A figure is left out if the long backlog took no longer: of few events, when the starts differ by more.
    """
    events = counts.events - counts.short_events
    seconds, cpu_s = long.seconds - short.seconds, long.cpu_s - short.cpu_s
    found = {"cpu_s": long.cpu_s, "counts_per_record": long.report.snapshots / counts.events}
    if seconds > 0:
        found["records_per_s"] = events / seconds
    if cpu_s > 0:
        found["us_per_record"] = 1e6 * cpu_s / events
        found["start_cpu_s"] = short.cpu_s - counts.short_events * cpu_s / events
    return found


def _milliseconds(reading: SensorReading) -> int:
    return int(datetime.fromisoformat(reading.ts).timestamp() * 1000)
