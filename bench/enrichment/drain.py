"""How fast a worker works off a topic of snapshots that was filled before it started, end to end.

Kafka in, planned, called, validated, written to Kafka and acknowledged, committed; and every answer is checked.
"""

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from bench.enrichment import answers
from bench.enrichment.api import Behaviour, await_api, fetch_ledger, serve
from bench.enrichment.jobs import WORKERS
from bench.enrichment.snapshots import snapshots
from bench.harness import machine, topics
from bench.harness.background import Background
from bench.harness.errors import JobStalledError, RunFailedError
from bench.harness.figures import Figures
from bench.harness.jobs import Job
from bench.harness.load import preload
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.process import RunningJob
from bench.harness.results import OracleReport
from bench.harness.topics import FEEDBACK, SNAPSHOTS

BEGIN, END = 0.1, 0.95
"""The part of the snapshots that counts: a worker warms up at first, and has fewer requests in flight at the end."""
LOOK_S = 0.1
PATIENCE_S = 45.0
"""How long a worker may finish nothing,"""
COMMIT_S = 20.0
"""and how long it may take to commit what it has answered."""


class NotCommittedError(RunFailedError):
    """A worker answered everything, and did not commit it: after a restart it would call again."""

    def __init__(self, job: str, committed: int, events: int, log: Path) -> None:
        super().__init__(f"{job} committed {committed:,} of {events:,} snapshots: see {log}")
        self.job = job
        self.committed = committed
        self.log = log


@dataclass(frozen=True)
class Calls(Measure[Job]):
    """Snapshots that are all there before a worker starts, and an API that behaves so."""

    events: int
    """How many snapshots, each of another vehicle."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    answered: bool = False
    """Whether the snapshots hold the answers already, so that they need no call. The peers do not measure that."""

    def __str__(self) -> str:
        what = "that need no call" if self.answered else f"one call each, {self.behaviour}"
        return f"{self.events:,} snapshots, {what}"

    @property
    @override
    def jobs(self) -> tuple[Job, ...]:
        return WORKERS[:1] if self.answered else WORKERS

    @override
    def meter(self, site: Site) -> "WorkerDrain":
        return WorkerDrain(self, site)


class Sample(NamedTuple):
    """One measurement of a worker. `done` is how many snapshots it has answered or, without calls, committed."""

    at: float
    """In seconds of the epoch."""
    cpu_s: float
    rss_mb: float
    done: int


class WorkerDrain(Meter[Job]):
    """Measures one worker at a time, each on snapshots of its own."""

    def __init__(self, calls: Calls, site: Site) -> None:
        self._calls, self._site = calls, site
        self._core = machine.measured_core()

    @override
    def measure(self, job: Job, name: str, show: Show) -> tuple[Figures, OracleReport]:
        calls, boot, pids = self._calls, self._site.boot, (os.getpid(), *self._site.pids)
        topics.renew(boot, SNAPSHOTS, FEEDBACK, "dead_letters")
        preload(boot, SNAPSHOTS, snapshots(calls.events, answered=calls.answered), show)
        with machine.kept_from(self._core, *pids), self._api() as port:
            facts = {"group": name, "core": str(self._core), "api": f"http://127.0.0.1:{port}"}
            with RunningJob(job, self._site, name, facts) as running:
                samples = self._follow(running, name, show)
                running.wait(self._site.settle_s)
            measured = figures(samples, calls.events, calls.answered)
            if not calls.answered:
                measured["repeated"] = fetch_ledger(port).repeated
        show("checking every answer")
        values = (value for _, value in topics.records(boot, FEEDBACK))
        return measured, answers.check(values, 0 if calls.answered else calls.events)

    @contextmanager
    def _api(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        with Background(serve, port, self._calls.behaviour):
            await_api(port)
            yield port

    def _follow(self, running: RunningJob, group: str, show: Show) -> list[Sample]:
        """Sample it until all snapshots are done and committed. Raises RunFailedError."""
        boot, events, samples = self._site.boot, self._calls.events, list[Sample]()
        with topics.Counter(boot, FEEDBACK) as feedback, topics.Commits(boot, group, SNAPSHOTS) as commits:

            def done() -> int:
                count = commits.count() if self._calls.answered else feedback.count()
                samples.append(Sample(time.time(), running.cpu_s(), running.group.rss_mb(), count))
                return count

            for count in running.counts(done, "answers", PATIENCE_S, LOOK_S):
                show(f"{count:,} of {events:,} snapshots")
                if count >= events:
                    break
            try:
                running.until(lambda: commits.count() >= events, "commit", COMMIT_S)
            except JobStalledError as error:
                raise NotCommittedError(running.job.name, commits.count(), events, running.log) from error
        return samples


def figures(samples: Sequence[Sample], events: int, answered: bool) -> Figures:  # noqa: FBT001  # a fact of the load
    """Return the rates of the steady part of a run with `events` snapshots, and the memory."""
    first = next(index for index, sample in enumerate(samples) if sample.done >= BEGIN * events)
    last = next((sample for sample in samples[first + 1 :] if sample.done >= END * events), samples[-1])
    begin, what = samples[first], "records" if answered else "calls"
    count = last.done - begin.done
    return {
        f"{what}_per_s": count / (last.at - begin.at),
        f"{what}_per_cpu_s": count / (last.cpu_s - begin.cpu_s),
        "rss_mb": max(sample.rss_mb for sample in samples),
    }
