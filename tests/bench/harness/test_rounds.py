from __future__ import annotations

from bench.harness.jobs import BARE, EXACT, STATELOOP
from bench.harness.plan import FULL, QUICK
from bench.harness.rounds import turns

JOBS = (STATELOOP, BARE, EXACT)


def test_jobs_take_turns_and_the_one_that_is_measured_once_comes_last() -> None:
    order = [(run.job.name, run.number) for run in turns("drain", JOBS, FULL)]
    pairs = [(name, number) for number in (1, 2, 3) for name in ("stateloop", "bare")]
    assert order == [*pairs, ("exact", 1)]


def test_a_quick_one_leaves_out_what_is_measured_once() -> None:
    assert [run.job.name for run in turns("drain", JOBS, QUICK)] == ["stateloop", "bare"]
