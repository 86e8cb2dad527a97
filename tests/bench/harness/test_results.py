from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from bench.harness.errors import NoResultsError
from bench.harness.results import OracleReport, RunResult, Session, keep, kept, middle

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = OracleReport(events=10, snapshots=10)
WRONG = OracleReport(events=10, snapshots=10, wrong=1)


def drain(job: str, rate: float, report: OracleReport = RIGHT, measure: str = "drain-2m") -> RunResult:
    return RunResult(measure, job, 1, {"records_per_s": rate}, report, size="small")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def test_stored_results_are_read_back(file: Path) -> None:
    results = [
        drain("flink", 1.0),
        drain("stateloop", 2.0, WRONG),
        RunResult("drain-2m", "kstreams", 1, problem="ended"),
    ]
    for result in results:
        keep(result, file, Session("today"))
    assert kept(file) == results


def test_each_result_has_the_figures_of_the_machine(file: Path) -> None:
    keep(drain("flink", 1.0), file, Session("today", wake_us=75.2, cpus=2))
    assert b'"session":"today","wake_us":75.2,"cpus":2' in file.read_bytes()
    assert str(Session("today", wake_us=75.2, cpus=2)) == "2 CPU; one wakes another in 75 µs"
    assert str(Session("today", cpus=1)) == "1 CPU"
    assert str(Session("today", cpus=1, against="/other")) == "1 CPU; before is /other"


def test_of_each_measure_the_last_session_counts(file: Path) -> None:
    for result in (drain("flink", 1.0), drain("flink", 5.0, measure="drain-100k")):
        keep(result, file, Session("monday"))
    keep(drain("flink", 2.0), file, Session("tuesday"))
    assert kept(file) == [drain("flink", 5.0, measure="drain-100k"), drain("flink", 2.0)]


def test_a_null_is_no_figure(file: Path) -> None:
    keep(RunResult("drain-2m", "flink", 1, {"gap_ms": math.nan, "cpu_s": 1.0}, RIGHT), file, Session("today"))
    assert kept(file)[0].figures == {"cpu_s": 1.0}


def test_without_a_file_nothing_is_kept(file: Path) -> None:
    with pytest.raises(NoResultsError, match="measure first, with make bench"):
        kept(file)


def test_failed_runs_have_no_part_in_the_medians() -> None:
    results = [drain("bare", 1.0), drain("bare", 100.0, WRONG), drain("bare", 3.0)]
    assert middle(results, "drain-2m", "bare", "records_per_s") == 2.0
