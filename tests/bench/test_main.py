from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from bench.__main__ import exit_code, parser, plan, selection
from bench.catalogue import FULL, QUICK
from bench.harness.jobs import CHECKOUT
from bench.harness.results import OracleReport, RunResult
from bench.harness.rounds import RoundSelection
from bench.targets import SIZES

if TYPE_CHECKING:
    from pathlib import Path

    from bench.harness.measure import Plan

RIGHT = OracleReport(events=10, snapshots=10)
WRONG = OracleReport(events=10, snapshots=10, wrong=1)


def parsed(*arguments: str) -> Plan:
    return plan(parser().parse_args(arguments))


def selected(*arguments: str) -> RoundSelection:
    return selection(parser().parse_args(arguments))


def drain(job: str, rate: float, report: OracleReport = RIGHT, size: str = SIZES["drain-2m"]) -> RunResult:
    return RunResult("drain-2m", job, 1, {"records_per_s": rate}, report, size=size)


def code(*results: RunResult) -> int:
    return exit_code(results, Console(quiet=True))


def test_the_options_of_the_command_line() -> None:
    assert parsed() == FULL
    assert parsed("--quick") == QUICK
    assert parsed("--runs", "5").runs == 5
    selected = parsed("--measures", "latency-1k", "drain-2m").measures
    assert [measure.name for measure in selected] == ["drain-2m", "latency-1k"]
    assert {parsed().size(measure) for measure in parsed("--runs", "1").measures} == set(SIZES.values())
    (stream,) = parsed("--seconds", "5", "--measures", "latency-1k").measures
    assert str(stream) == "1,000 events/s of 2,000 devices for 5 s"


def test_which_jobs() -> None:
    assert selected() == RoundSelection()
    assert selected("--jobs", "flink", "redis").names == {"flink", "redis"}
    assert selected("--against", str(CHECKOUT)).against == CHECKOUT


def test_another_folder_is_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        selected("--against", str(tmp_path))
    assert (
        f"{tmp_path} is no checkout of Stateloop: it has no bench/yardstick/application.py" in capsys.readouterr().err
    )


def test_all_right_is_0() -> None:
    assert code(drain("stateloop", 2.0), drain("flink", 1.0)) == 0


def test_a_fast_wrong_answer_fails_the_benchmark() -> None:
    assert code(drain("stateloop", 1e9, WRONG), drain("kstreams", 1.0)) == 1


def test_so_does_a_run_that_broke_off() -> None:
    assert code(drain("stateloop", 2.0), RunResult("drain-2m", "flink", 1, problem="flink ended by itself")) == 1


def test_and_one_in_which_nothing_ran() -> None:
    assert code() == 1


def test_a_missed_target_fails_the_benchmark_that_it_is_set_for() -> None:
    assert code(drain("stateloop", 1.0), drain("flink", 2.0)) == 1
    assert code(drain("stateloop", 1.0, size="small"), drain("flink", 2.0, size="small")) == 0
