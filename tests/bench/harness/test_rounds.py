from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.enrichment.measures import Calls
from bench.enrichment.workers import WORKERS
from bench.harness.jobs import BARE, FLINK, STATELOOP
from bench.harness.plan import FULL, BacklogPlan, Stream
from bench.harness.results import Session
from bench.harness.rounds import Rounds, Run, able, estimate, turns
from bench.query.measures import Keys, LoopMeasure
from bench.query.servers import QUERIES
from bench.windows.engines import WINDOW_JOBS
from bench.windows.measures import WindowCounts

DRAIN = BacklogPlan("drain", events=90_000, devices=10)
STREAM = Stream("latency", rate=900, seconds=40, warm_s=10)
PLAN = replace(FULL, measures=(DRAIN, STREAM), runs=2)


def test_jobs_take_turns() -> None:
    order = [(run.job.name, run.number) for run in turns(DRAIN, (STATELOOP, FLINK, BARE), runs=2)]
    assert order == [(name, number) for number in (1, 2) for name in ("stateloop", "flink", "bare")]


def test_workers_call_and_jobs_keep_states() -> None:
    everything = (STATELOOP, FLINK, *WORKERS)
    assert able(DRAIN, everything) == [STATELOOP, FLINK]
    assert able(Calls("calls", 10, peers=True), everything) == list(WORKERS)
    assert able(Calls("calls", 10), everything) == [WORKERS[0]]
    windows = WindowCounts("windows", 100, 10)
    assert able(windows, (*everything, *WINDOW_JOBS)) == list(WINDOW_JOBS)
    assert able(DRAIN, (*everything, *WINDOW_JOBS)) == [STATELOOP, FLINK]
    assert able(LoopMeasure("loop", 1, 1, 1), (*everything, *QUERIES)) == [STATELOOP]


def test_services_answer_and_those_that_push_are_measured_at_that() -> None:
    keys = Keys("keys", 10, rate=1, seconds=1, subscribers=1)
    assert able(keys, (STATELOOP, *QUERIES)) == list(QUERIES)
    assert able(replace(keys, pushes_only=True), QUERIES) == [QUERIES[0]]


def test_a_job_with_batches_is_waited_for_until_one_has_ended() -> None:
    assert estimate(Run(STREAM, STATELOOP, 1), PLAN) > estimate(Run(STREAM, FLINK, 1), PLAN) + 40


def test_the_estimate_has_all_runs_and_the_filling(tmp_path: Path) -> None:
    runs = sum(estimate(Run(one, FLINK, 1), PLAN) for one in PLAN.measures)
    whole = Rounds(PLAN, [FLINK], tmp_path / "results", Session("today")).expected
    assert 2 * runs < whole < 2 * runs + 60
    assert Rounds(PLAN, [FLINK, FLINK], Path(), Session("today")).expected == pytest.approx(2 * whole, rel=0.1)
