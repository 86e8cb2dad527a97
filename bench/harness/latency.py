"""Latency: how long from an event's sending to its snapshot's receiving, at a steady rate, on a warm job.

Nothing flows while a Spark batch ends and the next one begins. So the measured time begins shortly after a batch has
ended and is one batch long: it has exactly one boundary, near its end, as any such time has on average. Its first three
quarters are given by themselves: what a job does between boundaries. Boundaries are counted, not assumed.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress

from bench.harness import topics
from bench.harness.background import Background
from bench.harness.errors import JobStalled
from bench.harness.figures import Figures, largest_gap, percentiles, within
from bench.harness.jobs import Job
from bench.harness.load import Sent, steady
from bench.harness.oracle import Oracle, Reader
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.receive import Received, receive
from bench.harness.report import Result

MEASURING = "measuring"
WITHIN, WHOLE = "latency within a batch", "latency over a whole batch"
LOOK_S = 0.25
PATIENCE_S = 120.0
"""How long anything may take, beyond the length of a batch."""


class Latency:
    """Measures one job at a time; each has its own events."""

    def __init__(self, plan: Plan, site: Site) -> None:
        self._plan, self._site = plan, site

    def measure(self, job: Job, run: int, show: Show) -> list[Result]:
        """One run of one job. Raises RunFailed."""
        plan, boot = self._plan, self._site.boot
        topics.renew(boot, (*topics.INPUTS, *topics.OUTPUTS))
        with (
            Background(receive, boot) as receiver,
            Background(steady, boot, plan.rate, plan.rate_devices) as load,
            RunningJob(job, plan, self._site, f"latency-{job.name}-{run}") as running,
        ):
            begin = self._warm_up(running, show)
            before = running.group.cpu_s()
            self._pass(begin + plan.batch_s, running, MEASURING, show)
            cores = (running.group.cpu_s() - before) / plan.batch_s
            sent = load.finish()
            self._settle(len(sent), running)
            received, commits = receiver.finish(), running.commits()
        show("checking every snapshot", 1.0)
        verdict = Oracle(one.reading for one in sent).check((value for _, value in received), job)
        match = Match(sent, received, commits, Reader(job))
        return [
            Result(what, job.name, run, match.figures(begin, begin + took) | {"cores": cores}, verdict)
            for what, took in ((WITHIN, plan.within_s), (WHOLE, plan.batch_s))
        ]

    def _warm_up(self, running: RunningJob, show: Show) -> float:
        """Wait until it answers, its first batch is over, and a little; gives when, in seconds of the epoch."""
        batch = self._plan.batch_s
        show("starting", 0.0)
        with topics.Counter(self._site.boot, "snapshots") as counter:
            self._await(lambda: counter.count() > 0, running, "snapshot", PATIENCE_S)
        begin = time.time() + batch
        show("warming up for a batch", 0.1)
        if running.job.commits:
            self._await(lambda: bool(running.commits()), running, "end of a batch", batch + PATIENCE_S)
            begin = running.commits()[-1] + self._plan.lead_s
        self._pass(begin, running, "warming up for a batch", show)
        return begin

    def _pass(self, until: float, running: RunningJob, what: str, show: Show) -> None:
        """Wait until then; it is the run's next half."""
        from_s, began = (0.5, time.time()) if what == MEASURING else (0.0, running.began)
        while (left := until - time.time()) > 0:
            running.require_life()
            show(what, from_s + 0.5 * (1 - left / (until - began)))
            time.sleep(min(left, 4 * LOOK_S))

    def _await(self, condition: Callable[[], bool], running: RunningJob, what: str, patience_s: float) -> None:
        """Wait until the condition holds. Raises JobEnded, JobStalled."""
        deadline = time.monotonic() + patience_s
        while not condition():
            running.require_life()
            if time.monotonic() > deadline:
                raise running.stalled(what, patience_s)
            time.sleep(LOOK_S)

    def _settle(self, snapshots: int, running: RunningJob) -> None:
        """Wait for the last snapshots, and for duplicates; what is missing then, the oracle finds."""
        with topics.Counter(self._site.boot, "snapshots") as counter, suppress(JobStalled):
            self._await(lambda: counter.count() >= snapshots, running, "last snapshots", PATIENCE_S)
        time.sleep(self._plan.settle_s)
        running.require_life()


class Match:
    """Events and their snapshots, brought together."""

    def __init__(self, sent: list[Sent], received: list[Received], commits: list[float], reader: Reader) -> None:
        self._sent, self._commits = sent, commits
        self._times = [at for at, _ in received]
        self._first: dict[tuple[str, int], float] = {}
        for at, value in received:
            if read := reader.read(value):
                self._first.setdefault((read.device, read.events), at)

    def figures(self, begin: float, end: float) -> Figures:
        """Of the events sent in [begin, end)."""
        sent = [one for one in self._sent if begin <= one.at < end]
        figures = percentiles(self._latencies(sent, lambda one: one.at))
        due = percentiles(self._latencies(sent, lambda one: one.due))
        return figures | {
            "p99_from_due_ms": due["p99_ms"],
            "load_lag_ms": 1000 * max((one.at - one.due for one in sent), default=math.nan),
            "gap_ms": 1000 * largest_gap([at for at in self._times if begin <= at < end]),
            "boundaries": within(self._commits, begin, end),
            "events": len(sent),
        }

    def _latencies(self, sent: list[Sent], since: Callable[[Sent], float]) -> list[float]:
        keys = ((one, self._first.get((one.reading.device, one.reading.number))) for one in sent)
        return [at - since(one) for one, at in keys if at is not None]
