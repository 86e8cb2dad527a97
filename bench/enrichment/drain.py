"""How fast a worker works off a topic of snapshots that was filled before it started, end to end.

Kafka in, planned, called, validated, written to Kafka and acknowledged, committed; and every answer is checked.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.enrichment import answers
from bench.enrichment.api import serve
from bench.enrichment.ledger import await_api, fetch
from bench.enrichment.measures import Calls
from bench.enrichment.run import WorkerRun
from bench.enrichment.samples import Sampler
from bench.enrichment.snapshots import snapshots
from bench.harness import cores, topics
from bench.harness.background import Background
from bench.harness.errors import NotCommittedError
from bench.harness.jobs import Job
from bench.harness.load import preload
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.results import RunResult

LOOK_S = 0.1
KILL_AT = 0.5
COMMIT_S = 20.0
"""How long a worker may take to commit what it has answered."""
TOPICS = ("snapshots", "feedback", "dead_letters")


class WorkerDrain:
    """Measures one worker at a time, each on snapshots of its own."""

    def __init__(self, calls: Calls, plan: Plan, site: Site) -> None:
        self._calls, self._plan, self._site = calls, plan, site
        self._core = cores.measured()

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one worker. Raises RunFailedError."""
        calls, boot = self._calls, self._site.boot
        name = f"{calls.name}-{job.name}-{run}"
        self._fill(show)
        with cores.left_to(self._core, os.getpid(), *self._site.pids), self._api() as port, Sampler(boot, name) as seen:
            worker_run = self._run(job, name, port, seen, show)
        show("checking every answer", 1.0)
        expected = 0 if calls.answered else calls.events
        report = answers.check((value for _, value in topics.records(boot, "feedback")), expected)
        found = worker_run.figures(calls)
        if calls.fault:  # what was in flight is done again
            found["repeated_answers"], report.duplicates = report.duplicates, 0
        return RunResult(calls.name, job.name, run, found, report, size=self._plan.size(calls))

    def _fill(self, show: Show) -> None:
        topics.renew(self._site.boot, TOPICS)
        events, load = self._calls.events, snapshots(self._calls.events, answered=self._calls.answered)
        preload(self._site.boot, TOPICS[0], load, lambda sent: show(f"sent {sent:,} of {events:,} snapshots", 0.0))

    @contextmanager
    def _api(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        with Background(serve, port, self._calls.behaviour):
            await_api(port)
            yield port

    def _run(self, job: Job, name: str, port: int, sampler: Sampler, show: Show) -> WorkerRun:
        """Start it, kill it halfway if the measure has that fault, and follow it to its end."""
        run = WorkerRun(self._calls.answered)
        if self._calls.fault:
            with self._start(job, name, 0, port) as running:
                self._follow(running, sampler, run, KILL_AT * self._calls.events, show)
                running.group.kill()
                run.killed, run.ledger_killed = sampler.sample(running.group), fetch(port)
        with self._start(job, name, 1, port) as running:
            self._follow(running, sampler, run, self._calls.events, show)
            self._await_commit(running, sampler)
            time.sleep(self._plan.settle_s)
            running.require_running()
            run.ledger = fetch(port)
        return run

    def _start(self, job: Job, name: str, number: int, port: int) -> RunningJob:
        facts = {
            "group": name,
            "core": str(self._core),
            "api": f"http://127.0.0.1:{port}",
            "application": self._calls.application,
        }
        return RunningJob(job, self._plan, self._site, f"{name}-{number}", facts)

    def _follow(self, running: RunningJob, sampler: Sampler, run: WorkerRun, until: float, show: Show) -> None:
        """Look at it until so many snapshots are done. Raises JobExitedError, JobStalledError."""
        calls, last, since = self._calls, -1, time.monotonic()
        while last < until:
            running.require_running()
            if time.monotonic() - since > calls.patience_s:
                raise running.stalled(f"more answers than {last:,}", calls.patience_s)
            time.sleep(LOOK_S)
            sample = sampler.sample(running.group)
            run.samples.append(sample)
            if calls.behaviour.down_after_s is not None:
                run.memberships.append(sampler.members())
            done = run.done(sample)
            show(f"{done:,} of {calls.events:,} snapshots", done / calls.events)
            if done > last:
                last, since = done, time.monotonic()

    def _await_commit(self, running: RunningJob, sampler: Sampler) -> None:
        deadline = time.monotonic() + COMMIT_S
        while (committed := sampler.committed()) < self._calls.events:
            running.require_running()
            if time.monotonic() > deadline:
                raise NotCommittedError(running.job.name, committed, self._calls.events, running.log)
            time.sleep(LOOK_S)
