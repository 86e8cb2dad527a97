"""How fast a job counts the events of a topic that was filled before it started, without the cost of the start.

Each job counts a long backlog and a short one, from an empty state. The figures are the difference in events over the
difference in seconds. So they mean the same for a job that publishes a count for each event, and for one that publishes
nothing until a window, or the whole backlog, is over.
"""

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from typing_extensions import override

from bench.harness import topics
from bench.harness.figures import Figures
from bench.harness.load import SensorReading, preload, readings
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.process import RunningJob
from bench.harness.results import OracleReport
from bench.windows.jobs import WINDOW_JOBS, WindowJob
from bench.windows.oracle import WindowOracle
from bench.yardstick.drain import stamped_values

LONG, SHORT = "long", "short"
TOPICS = ("events", "feedback", "snapshots", "dead_letters")
PATIENCE_S = 240.0
"""How long a job may publish nothing."""
HOUR_S = 3600
OPEN_HOURS = 0.5
"""The events after the last whole hour. They show that it is over to engines that publish a window then."""


@dataclass(frozen=True)
class WindowCounts(Measure[WindowJob]):
    """A backlog of whole hours and half an hour more, and a short one, which is its beginning.

    The figures are differences between the two, so that the start of a job is not in them.
    """

    events: int
    devices: int
    hours: int = 12
    short_hours: int = 1
    jobs = WINDOW_JOBS

    def __str__(self) -> str:
        return f"{self.events:,} events of {self.devices:,} keys in {self.hours} hours"

    @override
    def meter(self, site: Site) -> "WindowDrain":
        return WindowDrain(self, site)

    @property
    def step_s(self) -> float:
        """The time between two events, as they are stamped."""
        return (self.hours + OPEN_HOURS) * HOUR_S / self.events

    @property
    def short_events(self) -> int:
        """How many of the events the shorter backlog has."""
        return round((self.short_hours + OPEN_HOURS) * HOUR_S / self.step_s)

    def readings(self, end: float) -> Iterator[SensorReading]:
        """All events in order, the events of the short backlog first. They end half an hour after a whole one."""
        return readings(self.events, self.devices, end, self.step_s)


@dataclass(frozen=True)
class Drained:
    """The time and CPU of a job from its start to its last count, and the report on its counts."""

    seconds: float
    cpu_s: float
    report: OracleReport


class WindowDrain(Meter[WindowJob]):
    """Fills the topics once; every job then counts the same events."""

    def __init__(self, counts: WindowCounts, site: Site) -> None:
        self._counts, self._site = counts, site
        self._end = time.time() // HOUR_S * HOUR_S - OPEN_HOURS * HOUR_S
        self._oracles: dict[str, WindowOracle] = {}

    @override
    def measure(self, job: WindowJob, name: str, show: Show) -> tuple[Figures, OracleReport]:
        if not self._oracles:
            self._oracles = {backlog: self._filled(backlog, show) for backlog in (SHORT, LONG)}
        short, long = (self._drain(job, backlog, f"{name}-{backlog}", show) for backlog in (SHORT, LONG))
        return figures(self._counts, short, long), long.report if short.report.right else short.report

    def _filled(self, backlog: str, show: Show) -> WindowOracle:
        """Return the oracle of a backlog; send its events, stamped with their times."""
        topics.renew(self._site.boot, *(f"{backlog}.{name}" for name in TOPICS))
        load = ((reading.device, reading.encode(), _milliseconds(reading)) for reading in self._readings(backlog))
        preload(self._site.boot, f"{backlog}.{TOPICS[0]}", load, show)
        show("computing what each count must be")
        return WindowOracle(self._readings(backlog))

    def _readings(self, backlog: str) -> Iterator[SensorReading]:
        """Both begin with the same whole hour."""
        events = self._counts.short_events if backlog == SHORT else self._counts.events
        return islice(self._counts.readings(self._end), events)

    def _drain(self, job: WindowJob, backlog: str, name: str, show: Show) -> Drained:
        """Let a job count a backlog. Raises JobExitedError, JobStalledError."""
        oracle, output = self._oracles[backlog], f"{backlog}.snapshots"
        topics.renew(self._site.boot, output)
        with RunningJob(job, self._site, name, {"backlog": backlog}) as running:
            samples = self._follow(running, output, oracle.least(job.emit), show)
        show("checking every count")
        times = array("d")
        report = oracle.check(stamped_values(self._site.boot, output, times), job)
        ended = max(times)
        used = next((cpu_s for at, cpu_s in samples if at >= ended), samples[-1][1])
        return Drained(ended - running.began, used, report)

    def _follow(self, running: RunningJob, output: str, least: int, show: Show) -> list[tuple[float, float]]:
        """Wait for the last count, and for duplicates; gives times and the CPU seconds used until then.

        Raises JobExitedError, JobStalledError.
        """
        samples, published, since = list[tuple[float, float]](), 0, time.monotonic()
        with topics.Counter(self._site.boot, output) as counter:
            for count in running.counts(counter.count, "counts", PATIENCE_S):
                samples.append((time.time(), running.cpu_s()))
                show(f"{count:,} of {least:,} counts" if count else "starting")
                if count > published:
                    published, since = count, time.monotonic()
                elif count >= least and time.monotonic() - since > self._site.settle_s:
                    break
        return samples


def figures(counts: WindowCounts, short: Drained, long: Drained) -> Figures:
    """The cost of the events that only the long backlog has.

    A figure is left out if the long backlog took no longer: of few events, when the starts differ by more.
    """
    events = counts.events - counts.short_events
    seconds, cpu_s = long.seconds - short.seconds, long.cpu_s - short.cpu_s
    measured = {"cpu_s": long.cpu_s, "counts_per_record": long.report.snapshots / counts.events}
    if seconds > 0:
        measured["records_per_s"] = events / seconds
    if cpu_s > 0:
        measured["us_per_record"] = 1e6 * cpu_s / events
        measured["start_cpu_s"] = short.cpu_s - counts.short_events * cpu_s / events
    return measured


def _milliseconds(reading: SensorReading) -> int:
    return int(datetime.fromisoformat(reading.ts).timestamp() * 1000)
