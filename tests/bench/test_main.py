from __future__ import annotations

from rich.console import Console

from bench.__main__ import VITAL_JOBS, chosen, exit_code, parser, plan
from bench.alerts.engines import ALERT_JOBS
from bench.enrichment.workers import WORKERS
from bench.harness.jobs import BARE, STATELOOP, USUAL
from bench.harness.oracle import OracleReport
from bench.harness.plan import FULL, QUICK, Plan
from bench.harness.results import RunResult
from bench.harness.targets import SIZES
from bench.query.servers import QUERIES
from bench.windows.engines import WINDOW_JOBS

RIGHT = OracleReport(events=10, snapshots=10)
WRONG = OracleReport(events=10, snapshots=10, wrong=1)


def parsed(*arguments: str) -> Plan:
    return plan(parser().parse_args(arguments))


def drain(job: str, rate: float, report: OracleReport = RIGHT, size: str = SIZES["drain-2m"]) -> RunResult:
    return RunResult("drain-2m", job, 1, {"records_per_s": rate}, report, size=size)


def code(*results: RunResult) -> int:
    return exit_code(results, Console(quiet=True))


def test_the_options_of_the_command_line() -> None:
    assert parsed() == FULL
    assert parsed("--quick") == QUICK
    assert parsed("--runs", "5").runs == 5
    assert parsed("--batch-s", "10").batch_s == 10
    assert [one.name for one in parsed("--measures", "latency-1k", "drain-2m").measures] == ["drain-2m", "latency-1k"]
    assert {parsed().size(one) for one in parsed("--runs", "1").measures} == set(SIZES.values())


def test_which_jobs() -> None:
    assert chosen(parser().parse_args([])) == (*USUAL, *WINDOW_JOBS, *ALERT_JOBS, *VITAL_JOBS, *WORKERS, *QUERIES)
    named = chosen(parser().parse_args(["--jobs", "bare", "stateloop"]))
    vitals = [job for job in VITAL_JOBS if job.name == STATELOOP.name]
    assert named == (STATELOOP, BARE, WINDOW_JOBS[0], ALERT_JOBS[0], *vitals, WORKERS[0], QUERIES[0])


def test_all_right_is_0() -> None:
    assert code(drain("stateloop", 2.0), drain("flink", 1.0)) == 0


def test_a_fast_wrong_answer_fails_the_benchmark() -> None:
    assert code(drain("stateloop", 1e9, WRONG), drain("bare", 1.0)) == 1


def test_so_does_a_run_that_broke_off() -> None:
    assert code(drain("stateloop", 2.0), RunResult("drain-2m", "bare", 1, problem="bare ended by itself")) == 1


def test_and_one_in_which_nothing_ran() -> None:
    assert code() == 1


def test_a_missed_target_fails_the_benchmark_that_it_is_set_for() -> None:
    assert code(drain("stateloop", 1.0), drain("flink", 2.0)) == 1
    assert code(drain("stateloop", 1.0, size="small"), drain("flink", 2.0, size="small")) == 0
