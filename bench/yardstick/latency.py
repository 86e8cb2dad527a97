"""Latency: how long from an event's sending to its snapshot's receiving, at a steady rate, on a warm job.

Nothing flows while a Spark batch ends and the next one begins. The measured time begins well after the first such
boundary; how many are in it is counted, not assumed.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import override

from bench.harness import topics
from bench.harness.background import Background
from bench.harness.errors import JobStalledError
from bench.harness.figures import Figures, largest_gap, percentile, percentiles, within
from bench.harness.load import Fleet, Sent, steady
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.process import RunningJob
from bench.harness.results import OracleReport
from bench.harness.topics import EVENTS, FEEDBACK, SNAPSHOTS, Received, receive
from bench.yardstick.jobs import STATE_JOBS, StateJob
from bench.yardstick.oracle import Oracle, SnapshotDecoder

PATIENCE_S = 240.0
"""How long anything may take,"""
BATCH_S = 600.0
"""and how long a job's first batch."""
LEAD_S = 5.0
"""From the first batch's end to the measured time: events that the boundary delayed have passed by then."""


@dataclass(frozen=True)
class Stream(Measure[StateJob]):
    """Events that come at a steady rate, a second, while a job runs: measured is how late their snapshots are."""

    rate: int
    seconds: int
    """How long is measured,"""
    warm_s: int
    """after the job has run for so long, and its first batch has ended."""
    devices: int = 2_000
    jobs = STATE_JOBS

    def __str__(self) -> str:
        return f"{self.rate:,} events/s of {self.devices:,} devices for {self.seconds} s"

    @override
    def meter(self, site: Site) -> "Latency":
        return Latency(self, site)


class Latency(Meter[StateJob]):
    """Measures one job at a time; each has its own events."""

    def __init__(self, stream: Stream, site: Site) -> None:
        self._stream, self._site = stream, site

    @override
    def measure(self, job: StateJob, name: str, show: Show) -> tuple[Figures, OracleReport]:
        stream, boot = self._stream, self._site.boot
        topics.renew(boot, EVENTS, FEEDBACK, SNAPSHOTS)
        with (
            Background(receive, boot, SNAPSHOTS) as receiver,
            Background(steady, boot, stream.rate, Fleet(stream.devices)) as load,
            RunningJob(job, self._site, name) as running,
            topics.Counter(boot, SNAPSHOTS) as counter,
        ):
            self._warm_up(job, running, counter, show)
            show(f"measuring for {stream.seconds} s")
            begin, used = time.time(), running.cpu_s()
            commits = self._pass(job, running, stream.seconds)
            end, cores = time.time(), (running.cpu_s() - used) / stream.seconds
            sent = load.finish()
            with suppress(JobStalledError):  # what is missing then, the oracle finds
                running.until(lambda: counter.count() >= len(sent), "last snapshots", PATIENCE_S)
            running.wait(self._site.settle_s)
            received = receiver.finish()
        show("checking every snapshot")
        report = Oracle(event.reading for event in sent).check((value for _, value in received), job)
        measured = figures(sent, received, commits, SnapshotDecoder(job.count), (begin, end))
        return measured | {"cores": cores}, report

    def _warm_up(self, job: StateJob, running: RunningJob, counter: topics.Counter, show: Show) -> None:
        """Wait until it answers, is warm, and its first batch is over."""
        running.until(lambda: counter.count() > 0, "snapshot", PATIENCE_S)
        show(f"warming up for {self._stream.warm_s} s")
        self._pass(job, running, self._stream.warm_s)
        if job.commits:
            show("waiting for the first batch's end")
            running.until(lambda: bool(running.commits(job.commits)), "end of a batch", BATCH_S)
            running.wait(running.commits(job.commits)[0] + LEAD_S - time.time())

    def _pass(self, job: StateJob, running: RunningJob, seconds: float) -> list[float]:
        """Wait for so long, and return the ends of all batches: a job keeps only the last few."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            running.wait(min(left, 1.0))
            running.commits(job.commits)
        return running.commits(job.commits)


def figures(
    sent: Sequence[Sent],
    received: Sequence[Received],
    commits: Sequence[float],
    reader: SnapshotDecoder,
    span: tuple[float, float],
) -> Figures:
    """The figures of the events sent in a span of time, in seconds of the epoch, and of their first snapshots."""
    begin, end = span
    first: dict[tuple[str, int], float] = {}
    for at, value in received:  # snapshots of events sent later cannot have come before
        if at >= begin and (read := reader.read(value)):
            first.setdefault((read.device, read.events), at)
    sent = [event for event in sent if begin <= event.at < end]
    came = [(event, first.get((event.reading.device, event.reading.number))) for event in sent]
    late = sorted(event.at - event.due for event in sent)
    return percentiles([at - event.at for event, at in came if at is not None]) | {
        "p99_from_due_ms": percentiles([at - event.due for event, at in came if at is not None])["p99_ms"],
        "late_p99_ms": 1000 * percentile(late, 0.99),
        "late_max_ms": 1000 * percentile(late, 1.0),
        "gap_ms": 1000 * largest_gap([at for at, _ in received if begin <= at < end]),
        "boundaries": within(commits, begin, end),
        "events": len(sent),
    }
