"""Latency: how long from an event's sending to its snapshot's receiving, at a steady rate, on a warm job.

Nothing flows while a Spark batch ends and the next one begins. The measured time begins well after the first such
boundary; how many are in it is counted, not assumed.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from bench.harness import topics
from bench.harness.background import Background
from bench.harness.errors import JobStalledError
from bench.harness.jobs import Job
from bench.harness.load import steady
from bench.harness.match import Match
from bench.harness.oracle import Oracle, SnapshotDecoder
from bench.harness.plan import Plan, Site, Stream
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.receive import receive
from bench.harness.results import RunResult

LOOK_S = 0.25
PATIENCE_S = 120.0
"""How long anything may take,"""
BATCH_S = 600.0
"""and how long a job's first batch."""
LEAD_S = 5.0
"""From the first batch's end to the measured time: events that the boundary delayed have passed by then."""


class Latency:
    """Measures one job at a time; each has its own events."""

    def __init__(self, stream: Stream, plan: Plan, site: Site) -> None:
        self._stream, self._plan, self._site = stream, plan, site

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one job. Raises RunFailedError."""
        stream, boot = self._stream, self._site.boot
        topics.renew(boot, (*topics.INPUTS, *topics.OUTPUTS))
        with (
            Background(receive, boot, "snapshots") as receiver,
            Background(steady, boot, stream.rate, stream.fleet()) as load,
            RunningJob(job, self._plan, self._site, f"{stream.name}-{job.name}-{run}") as running,
        ):
            begin = self.warm_up(running, show)
            end, before = begin + stream.seconds, running.group.cpu_s()
            self._pass(end, running, "measuring", show)
            cores = (running.group.cpu_s() - before) / stream.seconds
            sent = load.finish()
            self._settle(len(sent), running)
            received, commits = receiver.finish(), running.commits()
        show("checking every snapshot", 1.0)
        report = Oracle(one.reading for one in sent).check((value for _, value in received), job)
        figures = Match(sent, received, commits, SnapshotDecoder(job)).figures(begin, end) | {"cores": cores}
        return RunResult(stream.name, job.name, run, figures, report, size=self._plan.size(stream))

    def warm_up(self, running: RunningJob, show: Show) -> float:
        """Wait until it answers, is warm, and its first batch is over; gives when, in seconds of the epoch."""
        show("starting", 0.0)
        with topics.Counter(self._site.boot, "snapshots") as counter:
            self._await(lambda: counter.count() > 0, running, "snapshot", PATIENCE_S)
        begin = time.time() + self._stream.warm_s
        self._pass(begin, running, "warming up", show)
        if running.job.commits:
            show("waiting for the first batch's end", 0.0)
            self._await(lambda: bool(running.commits()), running, "end of a batch", BATCH_S)
            begin = max(begin, running.commits()[0] + LEAD_S)
            self._pass(begin, running, "warming up", show)
        return begin

    def _pass(self, until: float, running: RunningJob, what: str, show: Show) -> None:
        """Wait until then."""
        whole = self._stream.warm_s + self._stream.seconds
        over = whole if what == "measuring" else self._stream.warm_s
        while (left := until - time.time()) > 0:
            running.require_running()
            running.commits()
            show(f"{what}, {left:.0f} s", max(0.0, over - left) / whole)
            time.sleep(min(left, 4 * LOOK_S))

    def _await(self, condition: Callable[[], bool], running: RunningJob, what: str, patience_s: float) -> None:
        """Wait until the condition holds. Raises JobExitedError, JobStalledError."""
        deadline = time.monotonic() + patience_s
        while not condition():
            running.require_running()
            if time.monotonic() > deadline:
                raise running.stalled(what, patience_s)
            time.sleep(LOOK_S)

    def _settle(self, snapshots: int, running: RunningJob) -> None:
        """Wait for the last snapshots, and for duplicates; what is missing then, the oracle finds."""
        with topics.Counter(self._site.boot, "snapshots") as counter, suppress(JobStalledError):
            self._await(lambda: counter.count() >= snapshots, running, "last snapshots", PATIENCE_S)
        time.sleep(self._plan.settle_s)
        running.require_running()
