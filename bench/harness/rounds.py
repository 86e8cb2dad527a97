"""All runs of all jobs, in turns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.drain import Drain
from bench.harness.errors import RunFailed
from bench.harness.jobs import Job
from bench.harness.latency import Latency
from bench.harness.plan import Plan, Site
from bench.harness.progress import Display, Show
from bench.harness.report import Result, keep

FILL_PER_S, DRAIN_PER_S = 60_000, 25_000
START_S, CHECK_S = 20.0, 5.0


@dataclass(frozen=True)
class Run:
    """One measurement of one job, still to be done."""

    measure: str
    job: Job
    number: int


def turns(measure: str, jobs: Sequence[Job], plan: Plan) -> Iterator[Run]:
    """A B A B …: what changes on the machine meanwhile changes for all. Jobs measured once come last."""
    for number in range(1, plan.runs + 1):
        yield from (Run(measure, job, number) for job in jobs if not job.once)
    yield from (Run(measure, job, 1) for job in jobs if job.once and plan.once)


def estimates(plan: Plan) -> dict[str, float]:
    """How long a run of each measure takes, in seconds, and how long the filling."""
    drain = START_S + plan.events / DRAIN_PER_S + plan.settle_s + CHECK_S
    latency = START_S + 2 * plan.batch_s + plan.lead_s + plan.settle_s + CHECK_S
    return {"fill": 5 + plan.events / FILL_PER_S, "drain": drain, "latency": latency}


class Rounds:
    """Measures everything; results are written to the file as they come."""

    def __init__(self, plan: Plan, jobs: Sequence[Job], file: Path) -> None:
        self._plan, self._file = plan, file
        self._estimates = estimates(plan)
        self._drains = list(turns("drain", jobs, plan))
        self._latencies = list(turns("latency", jobs, plan))

    @property
    def expected(self) -> float:
        """How long it takes, in seconds."""
        runs = self._drains + self._latencies
        return self._estimates["fill"] + sum(self._estimates[run.measure] for run in runs)

    def measure(self, site: Site, display: Display) -> list[Result]:
        """All results, those of failed runs too."""
        display.begin("filling the topic", self._estimates["fill"])
        drain = Drain(self._plan, site)
        drain.fill(display.show)
        display.end(f"{self._plan.events:,} events of {self._plan.devices:,} devices are in the topic")
        results = self._all(self._drains, drain.measure, display)
        return results + self._all(self._latencies, Latency(self._plan, site).measure, display)

    def _all(
        self, runs: list[Run], measure: Callable[[Job, int, Show], list[Result]], display: Display
    ) -> list[Result]:
        results: list[Result] = []
        for run in runs:
            display.begin(f"{run.measure}, {run.job.name} {run.number}", self._estimates[run.measure])
            try:
                found = measure(run.job, run.number, display.show)
            except RunFailed as error:
                found = [Result(run.measure, run.job.name, run.number, problem=str(error))]
            keep(found, self._file)
            display.end("\n".join(map(str, found)))
            results += found
        return results
