"""All runs of all jobs, in turns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from bench.harness.errors import RunFailedError, require
from bench.harness.jobs import Job
from bench.harness.measure import Measure, Meter, Plan, Site
from bench.harness.progress import Display
from bench.harness.report import described
from bench.harness.results import RunResult, Session, keep
from bench.peers.build import build


@dataclass(frozen=True)
class RoundSelection:
    """The jobs that are measured."""

    names: frozenset[str] = frozenset()
    """The names of the jobs. None: the usual jobs, or ours alone if there is another checkout."""
    against: Path | None = None
    """Another checkout, from which our job runs too."""

    def of(self, measure: Measure[Any]) -> list[Job]:
        """The jobs of a measure: with another checkout ours, that one's, and the others that are named."""
        ours, *others = measure.jobs
        if self.against:
            return [ours, ours.in_checkout(self.against), *(job for job in others if job.name in self.names)]
        return [job for job in measure.jobs if (job.name in self.names if self.names else job.is_usual)]


@dataclass(frozen=True)
class Run:
    """One measurement of one job, still to be done."""

    measure: Measure[Any]
    job: Job
    number: int

    def __str__(self) -> str:
        return f"{self.measure.name}, {self.job.name} {self.number}"


def turns(measure: Measure[Any], jobs: list[Job], runs: int) -> list[Run]:
    """A B C A B C …: what changes on the machine meanwhile changes for all."""
    return [Run(measure, job, number) for number in range(1, runs + 1) for job in jobs]


class Rounds:
    """Measures everything; results are written to the file as they come."""

    def __init__(self, plan: Plan, selection: RoundSelection, file: Path, session: Session) -> None:
        self._plan, self._file, self._session = plan, file, session
        self._runs = [turns(measure, selection.of(measure), plan.runs) for measure in plan.measures]

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def prepare(self, report: Callable[[str], None]) -> None:
        """Build the peers that are measured. Raises BenchError, also if a program is not installed."""
        jobs = [run.job for runs in self._runs for run in runs]
        require(sorted({program for job in jobs for program in job.programs}))
        for peer in sorted({job.peer for job in jobs if job.peer}):
            build(peer, report)

    def measure(self, site: Site, display: Display) -> list[RunResult]:
        """All results, also of failed runs."""
        site = replace(site, batch_s=self._plan.batch_s)
        return [result for runs in self._runs if runs for result in self._all(runs, site, display)]

    def _all(self, runs: list[Run], site: Site, display: Display) -> Iterator[RunResult]:
        meter = runs[0].measure.meter(site)
        for run in runs:
            display.begin(str(run))
            result = self._result(run, meter, display)
            keep(result, self._file, self._session)
            display.end(described(result))
            yield result

    def _result(self, run: Run, meter: Meter[Any], display: Display) -> RunResult:
        measure, job = run.measure, run.job
        empty = RunResult(measure.name, job.name, run.number, size=self._plan.size(measure))
        try:
            figures, report = meter.measure(job, f"{measure.name}-{job.name}-{run.number}", display.show)
        except (RunFailedError, KafkaException, TimeoutError) as error:  # the broker may be slow for once, too
            return replace(empty, problem=str(error))
        return replace(empty, figures=figures, report=report)
