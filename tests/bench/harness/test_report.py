from __future__ import annotations

from rich.console import Console

from bench.harness.report import described, show
from bench.harness.results import OracleReport, RunResult

RIGHT = OracleReport(events=10, snapshots=10)
SIZE = "3,000,000 events"


def drain(job: str, rate: float, size: str = SIZE) -> RunResult:
    return RunResult("drain-2m", job, 1, {"records_per_s": rate}, RIGHT, size=size)


def latency(late: float) -> RunResult:
    return RunResult(
        "latency-1k", "flink", 1, {"p50_ms": 4.0, "late_p99_ms": late, "boundaries": 9}, RIGHT, size="small"
    )


def printed(*results: RunResult) -> str:
    console = Console(record=True, width=200, stderr=True)
    show(results, console)
    return console.export_text()


def test_medians_and_each_value_and_the_ratio_to_each_other_job() -> None:
    text = printed(
        drain("stateloop", 30_000), drain("stateloop", 50_000), drain("flink", 40_000), drain("before", 80_000)
    )
    assert "40,000" in text
    assert "30,000 50,000" in text
    assert "stateloop / flink" in text
    assert "stateloop / before" in text
    assert "1.00" in text
    assert "0.50" in text
    assert SIZE in " ".join(text.split())


def test_figures_of_the_conditions_have_no_ratio() -> None:
    ours = RunResult("latency-1k", "stateloop", 1, {"p50_ms": 5.0, "boundaries": 18}, RIGHT)
    text = printed(ours, latency(late=1.0))
    assert "1.25" in text
    assert "2.00" not in text


def test_a_late_load_is_reported() -> None:
    assert "LOAD LATE: 12 ms at p99" in printed(latency(late=12.0))
    assert "LOAD LATE" in described(latency(late=12.0))
    assert "LOAD LATE" not in printed(latency(late=1.0))


def test_a_run_in_a_line() -> None:
    assert described(drain("flink", 40_000)).startswith("ok     drain-2m, flink 1: records/s 40,000; each of 10 events")
    assert described(RunResult("drain-2m", "flink", 2, problem="it ended")) == "FAILED drain-2m, flink 2: it ended"
