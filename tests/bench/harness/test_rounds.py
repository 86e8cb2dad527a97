from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from bench.alerts.jobs import ALERT_JOBS
from bench.catalogue import FULL
from bench.enrichment.drain import Calls
from bench.enrichment.jobs import WORKERS
from bench.harness.errors import JobStalledError, ProgramMissingError, require
from bench.harness.jobs import BEFORE, Job
from bench.harness.measure import Measure, Plan, Show, Site
from bench.harness.progress import Display
from bench.harness.results import OracleReport, Session, kept
from bench.harness.rounds import Rounds, RoundSelection, turns
from bench.yardstick.drain import DrainMeasure

if TYPE_CHECKING:
    from bench.harness.figures import Figures

DRAIN = DrainMeasure("drain", events=90_000, devices=10)
CALLS = Calls("calls", 10)


def names(measure: Measure[Any], *named: str, against: Path | None = None) -> list[str]:
    return [job.name for job in RoundSelection(frozenset(named), against).of(measure)]


def test_jobs_take_turns() -> None:
    order = [(run.job.name, run.number) for run in turns(DRAIN, list(DRAIN.jobs[:3]), runs=2)]
    assert order == [(name, number) for number in (1, 2) for name in ("stateloop", "flink", "kstreams")]


def test_the_jobs_of_a_measure() -> None:
    assert names(DRAIN) == ["stateloop", "flink", "kstreams"]
    assert names(DRAIN, "exact", "stateloop", "faststream") == ["stateloop", "exact"]
    assert names(CALLS) == [job.name for job in WORKERS]
    assert names(Calls("idle", 10, answered=True)) == ["stateloop"]


def test_ours_is_measured_against_another_checkout(tmp_path: Path) -> None:
    assert names(DRAIN, against=tmp_path) == ["stateloop", "before"]
    assert names(DRAIN, "flink", against=tmp_path) == ["stateloop", "before", "flink"]
    for measure in FULL.measures:
        ours, before = RoundSelection(against=tmp_path).of(measure)
        assert (before.name, before.folder) == (BEFORE, tmp_path)
        assert (before.command, before.environment) == (ours.command, ours.environment)


def test_so_is_the_job_that_writes_the_states_for_ours(tmp_path: Path) -> None:
    states = ALERT_JOBS[0].in_checkout(tmp_path).states
    assert states is not None
    assert states.folder == tmp_path


class Turns(Measure[Job]):
    """Counts its runs. The second job fails."""

    jobs = (Job("stateloop", ()), Job("stalls", ()))

    def __str__(self) -> str:
        return "some"

    def meter(self, site: Site) -> Turns:
        assert site.batch_s == 15
        return self

    def measure(self, job: Job, name: str, show: Show) -> tuple[Figures, OracleReport]:
        show("measuring")
        if job.name == "stalls":
            raise JobStalledError(name, "answer", 1.0, Path("log"))
        return {"cpu_s": 1.0}, OracleReport(events=1)


def test_the_results_of_all_runs_are_kept(tmp_path: Path) -> None:
    rounds = Rounds(
        Plan((Turns("turns"),), runs=2, batch_s=15), RoundSelection(), tmp_path / "results", Session("today")
    )
    with Display(Console(quiet=True), len(rounds)) as display:
        results = rounds.measure(Site("", tmp_path, tmp_path), display)
    assert len(rounds) == 4
    assert [(result.job, result.run, result.right) for result in results] == [
        ("stateloop", 1, True),
        ("stalls", 1, False),
        ("stateloop", 2, True),
        ("stalls", 2, False),
    ]
    assert results[1].problem == "turns-stalls-1 gave no answer for 1 s: see log"
    assert {result.size for result in results} == {"some, batches of 15 s"}
    assert kept(tmp_path / "results") == results


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ProgramMissingError, match=r"redis-benchmark, wrk missing: .*apt-get install redis-tools wrk"):
        require(("redis-benchmark", "wrk"))
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    require(("redis-benchmark", "wrk"))
