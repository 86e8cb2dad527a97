"""All runs of all jobs, in turns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaException

from bench.alerts.changes import RuleChangeTimes
from bench.alerts.engines import ALERT_JOBS
from bench.alerts.latency import AlertLatency
from bench.alerts.measures import AlertStream, RuleChanges
from bench.coverage.engines import COVERAGE_ENGINES, COVERAGE_JOBS, COVERAGE_SERVICE
from bench.coverage.measures import CoverageCost, CoverageQueries
from bench.coverage.queries import CoverageLookups
from bench.enrichment.drain import WorkerDrain
from bench.enrichment.measures import Calls
from bench.enrichment.workers import WORKERS
from bench.harness.drain import Drain
from bench.harness.errors import RunFailedError
from bench.harness.jobs import JOBS, MEASURED, Job
from bench.harness.latency import Latency
from bench.harness.plan import BacklogPlan, Measure, Plan, Site, Stream
from bench.harness.progress import Display, Show
from bench.harness.report import described
from bench.harness.results import RunResult, Session, keep
from bench.query.loop import EventVisibility
from bench.query.measures import Keys, LoopMeasure
from bench.query.servers import QUERIES, SERVERS
from bench.query.service import KeyQueries
from bench.raw.drain import RawDrain
from bench.raw.jobs import RAW_JOBS
from bench.raw.measures import RawChunks
from bench.vitals.jobs import VITALS_JOB
from bench.vitals.measures import ChunkVisibility
from bench.vitals.visibility import ChunkVisible
from bench.windows.drain import WindowDrain
from bench.windows.engines import ENGINES, WINDOW_JOBS
from bench.windows.measures import WindowCounts

FILL_PER_S, DRAIN_PER_S, CHECK_PER_S = 40_000, 45_000, 90_000
START_S, STOP_S, BATCH_S = 15.0, 5.0, 300.0


class Meter(Protocol):
    """Measures one job at a time."""

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one job. Raises RunFailedError."""
        ...


METERS: dict[type[Measure], Callable[[Any, Plan, Site], Meter]] = {
    BacklogPlan: Drain,
    Stream: Latency,
    WindowCounts: partial(WindowDrain, ENGINES),
    AlertStream: AlertLatency,
    RuleChanges: RuleChangeTimes,
    CoverageCost: partial(WindowDrain, COVERAGE_ENGINES),
    CoverageQueries: CoverageLookups,
    RawChunks: RawDrain,
    ChunkVisibility: ChunkVisible,
    Calls: WorkerDrain,
    Keys: KeyQueries,
    LoopMeasure: EventVisibility,
}
ABLE: dict[type[Measure], tuple[Job, ...]] = {
    BacklogPlan: JOBS,
    Stream: JOBS,
    WindowCounts: WINDOW_JOBS,
    AlertStream: ALERT_JOBS,
    RuleChanges: ALERT_JOBS,
    CoverageCost: COVERAGE_JOBS,
    CoverageQueries: (COVERAGE_SERVICE,),
    RawChunks: RAW_JOBS,
    ChunkVisibility: (VITALS_JOB,),
    LoopMeasure: (MEASURED,),
}
"""The jobs that do what is measured. Not all of them call, or answer for keys."""


@dataclass(frozen=True)
class Run:
    """One measurement of one job, still to be done."""

    measure: Measure
    job: Job
    number: int


def able(measure: Measure, jobs: Sequence[Job]) -> list[Job]:
    """Those of the jobs that do what is measured: workers call, services answer, jobs keep states, or count."""
    if isinstance(measure, Calls):
        return [job for job in jobs if job in (WORKERS if measure.peers else WORKERS[:1])]
    if isinstance(measure, Keys):
        return [job for job in jobs if job in QUERIES and (SERVERS[job.name].pushes or not measure.pushes_only)]
    return [job for job in jobs if job in ABLE[type(measure)]]


def turns(measure: Measure, jobs: Sequence[Job], runs: int) -> Iterator[Run]:
    """A B C A B C …: what changes on the machine meanwhile changes for all."""
    for number in range(1, runs + 1):
        yield from (Run(measure, job, number) for job in jobs)


def estimate(run: Run, plan: Plan) -> float:
    """Return how long a run takes, in seconds, without the filling of the topic."""
    measure, overhead = run.measure, START_S + plan.settle_s + STOP_S
    if isinstance(measure, Calls | Keys | AlertStream | RuleChanges | RawChunks | CoverageQueries | ChunkVisibility):
        return overhead + measure.estimate_s
    if isinstance(measure, WindowCounts):
        return 2 * overhead + measure.estimate_s
    if isinstance(measure, BacklogPlan):
        return overhead + measure.events / DRAIN_PER_S + measure.events / CHECK_PER_S
    batch = (plan.batch_s or BATCH_S) if run.job.commits else 0
    took = max(measure.warm_s, batch) + measure.seconds
    return overhead + took + took * measure.rate / CHECK_PER_S


class Rounds:
    """Measures everything; results are written to the file as they come."""

    def __init__(self, plan: Plan, jobs: Sequence[Job], file: Path, session: Session) -> None:
        self._plan, self._file, self._session = plan, file, session
        self._runs = [(one, list(turns(one, able(one, jobs), plan.runs))) for one in plan.measures]

    @property
    def expected(self) -> float:
        """How long it takes, in seconds."""
        fills = sum(_fill_s(measure) for measure, _ in self._runs)
        return fills + sum(estimate(run, self._plan) for _, runs in self._runs for run in runs)

    def measure(self, site: Site, display: Display) -> list[RunResult]:
        """All results, those of failed runs too."""
        return [result for measure, runs in self._runs for result in self._all(measure, runs, site, display)]

    def _all(self, measure: Measure, runs: list[Run], site: Site, display: Display) -> Iterator[RunResult]:
        plan = self._plan
        meter = METERS[type(measure)](measure, plan, site)
        for run in runs:
            filling = _fill_s(measure) if run is runs[0] else 0
            display.begin(f"{measure.name}, {run.job.name} {run.number}", filling + estimate(run, plan))
            try:
                result = meter.measure(run.job, run.number, display.show)
            except (RunFailedError, KafkaException, TimeoutError) as error:  # the broker may be slow for once, too
                result = RunResult(measure.name, run.job.name, run.number, problem=str(error), size=plan.size(measure))
            keep([result], self._file, self._session)
            display.end(described(result))
            yield result


def _fill_s(measure: Measure) -> float:
    """Return how long filling the topic takes, and computing what comes of it."""
    return 2 * measure.events / FILL_PER_S if isinstance(measure, BacklogPlan | WindowCounts) else 0
