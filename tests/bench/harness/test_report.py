from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from rich.console import Console

from bench.__main__ import exit_code, full, parser, plan
from bench.harness.jobs import JOBS, STATELOOP
from bench.harness.oracle import Verdict
from bench.harness.report import TARGETS, Result, keep, middle, show

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = Verdict(events=10, snapshots=10)
WRONG = Verdict(events=10, snapshots=10, wrong=1)
DRAIN = TARGETS[-1]


def drain(job: str, rate: float, verdict: Verdict = RIGHT) -> Result:
    return Result("drain", job, 1, {"records_per_s": rate}, verdict)


def quiet() -> Console:
    return Console(record=True, quiet=False, width=200, file=None, stderr=True)


def test_all_right_is_0() -> None:
    assert exit_code([drain("stateloop", 2.0), drain("bare", 1.0)], quiet()) == 0


def test_a_fast_wrong_answer_fails_the_benchmark() -> None:
    assert exit_code([drain("stateloop", 1e9, WRONG), drain("bare", 1.0)], quiet()) == 1


def test_so_does_a_run_that_broke_off() -> None:
    broken = Result("drain", "bare", 1, problem="bare ended by itself")
    assert exit_code([drain("stateloop", 2.0), broken], quiet()) == 1


def test_and_one_in_which_nothing_ran() -> None:
    assert exit_code([], quiet()) == 1


def test_a_missed_target_fails_the_benchmark_that_it_is_set_for() -> None:
    assert exit_code([drain("stateloop", 2.0), drain("bare", 1.0)], quiet(), (DRAIN,)) == 0
    assert exit_code([drain("stateloop", 1.0), drain("bare", 2.0)], quiet(), (DRAIN,)) == 1
    assert exit_code([drain("stateloop", 1.0), drain("bare", 2.0)], quiet()) == 0


def test_targets_are_set_for_the_full_benchmark_however_often_it_is_run() -> None:
    def is_full(*arguments: str) -> bool:
        return full(plan(parser().parse_args(arguments)), JOBS)

    assert is_full()
    assert is_full("--runs", "5")
    assert not is_full("--quick")
    assert not is_full("--events", "1000")
    assert not full(plan(parser().parse_args([])), [STATELOOP])


def test_failed_runs_have_no_part_in_the_medians() -> None:
    results = [drain("bare", 1.0), drain("bare", 100.0, WRONG), drain("bare", 3.0)]
    assert middle(results, "drain", "bare", "records_per_s") == 2.0


def test_a_target_of_a_ratio() -> None:
    assert DRAIN.outcome([drain("stateloop", 2.0), drain("bare", 2.0)])[0]
    assert not DRAIN.outcome([drain("stateloop", 1.0), drain("bare", 2.0)])[0]


def test_a_target_without_a_run_that_counts_is_not_met() -> None:
    assert not DRAIN.outcome([drain("stateloop", 2.0, WRONG), drain("bare", 2.0)])[0]


def test_what_is_printed_has_medians_and_each_value() -> None:
    console = quiet()
    show([drain("stateloop", 30_000), drain("stateloop", 50_000), drain("bare", 40_000)], console)
    printed = console.export_text()
    assert "40,000" in printed
    assert "30,000 50,000" in printed
    assert "1.00" in printed


def test_json_lines_are_appended(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    keep([drain("bare", 1.0)], file)
    keep([drain("stateloop", 2.0, WRONG)], file)
    first, second = (orjson.loads(line) for line in file.read_bytes().splitlines())
    assert first["figures"] == {"records_per_s": 1.0}
    assert (first["right"], second["right"]) == (True, False)
    assert second["verdict"]["wrong"] == 1
