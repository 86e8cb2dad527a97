from __future__ import annotations

from rich.console import Console

from bench.harness.results import OracleReport, RunResult
from bench.targets import SIZES, TARGETS, missed, show

RIGHT = OracleReport(events=10, snapshots=10)
WRONG = OracleReport(events=10, snapshots=10, wrong=1)
RATIO, GOAL = TARGETS[:2]
ABSOLUTE = next(goal for goal in TARGETS if goal.measure == "latency-10k")
BATCHED = next(goal for goal in TARGETS if goal.of == "stateloop-batch")
RELATIVE = next(goal for goal in TARGETS if goal.measure == "worker-slow")


def drain(job: str, rate: float, report: OracleReport = RIGHT, size: str = SIZES["drain-2m"]) -> RunResult:
    return RunResult("drain-2m", job, 1, {"records_per_s": rate}, report, size=size)


def latency(job: str, p99: float) -> RunResult:
    return RunResult("latency-10k", job, 1, {"p99_ms": p99}, RIGHT, size=SIZES["latency-10k"])


def test_a_ratio() -> None:
    assert RATIO.outcome([drain("stateloop", 2.0), drain("flink", 2.0)])[0]
    met, sentence = RATIO.outcome([drain("stateloop", 1.0), drain("flink", 2.0)])
    assert not met
    assert sentence == "NOT MET drain-2m: records/s over that of flink 0.50 (target ≥ 1)"


def test_an_absolute_bound_needs_no_other_job() -> None:
    assert missed([latency("stateloop", 101)]) == [ABSOLUTE]
    assert not missed([latency("stateloop", 99)])
    assert not missed([latency("flink", 101)])


def calls(measure: str, rate: float) -> RunResult:
    return RunResult(measure, "stateloop", 1, {"calls_per_s": rate}, RIGHT, size=SIZES[measure])


def test_a_ratio_to_another_measure() -> None:
    assert not RELATIVE.binds([calls("worker-slow", 90.0)])
    results = [calls("worker-slow", 90.0), calls("worker-calls", 100.0)]
    assert RELATIVE.binds(results)
    met, sentence = RELATIVE.outcome(results)
    assert not met
    assert sentence == "NOT MET worker-slow: calls/s over that of worker-calls 0.90 (target ≥ 0.95)"


def test_without_a_run_that_counts_it_is_not_met() -> None:
    assert missed([drain("stateloop", 2.0, WRONG), drain("flink", 1.0)]) == [RATIO]
    assert missed([drain("stateloop", 2.0), drain("flink", 1.0, WRONG)]) == [RATIO]


def test_it_binds_at_its_size_and_compared_with_its_job() -> None:
    assert not missed([drain("stateloop", 1.0), drain("kstreams", 2.0)])
    assert not missed([drain("stateloop", 1.0, size="small"), drain("flink", 2.0, size="small")])
    assert missed([drain("stateloop", 1.0), drain("flink", 2.0)]) == [RATIO]


def counts(job: str, rate: float) -> RunResult:
    return RunResult("windows", job, 1, {"records_per_s": rate}, RIGHT, size=SIZES["windows"])


def test_a_ratio_of_another_of_our_jobs() -> None:
    ours = [counts("stateloop", 9.0), counts("stateloop-batch", 3.0)]
    assert not BATCHED.binds([ours[0], counts("flink-close", 2.0)])
    results = [*ours, counts("flink-close", 2.0)]
    assert BATCHED.binds(results)
    sentence = "reached windows: stateloop-batch, records/s over that of flink-close 1.50 (goal ≥ 0.8)"
    assert BATCHED.outcome(results) == (True, sentence)


def test_nothing_fails_for_a_goal_beyond() -> None:
    results = [drain("stateloop", 2.0), drain("flink", 1.0), drain("kstreams", 3.0)]
    assert GOAL.binds(results)
    assert GOAL.outcome(results)[1].startswith("beyond")
    assert not missed(results)


def printed(*results: RunResult) -> str:
    console = Console(record=True, width=200, stderr=True)
    show(results, console)
    return console.export_text()


def test_targets_that_bind_are_reported_and_how_many_do_not() -> None:
    text = printed(drain("stateloop", 3.0), drain("flink", 4.0))
    assert "NOT MET drain-2m" in text
    assert f"{len(TARGETS) - 1} of {len(TARGETS)} targets are for other sizes or jobs" in text
    assert "NOT MET" not in printed(drain("stateloop", 3.0, size="small"), drain("flink", 4.0, size="small"))
