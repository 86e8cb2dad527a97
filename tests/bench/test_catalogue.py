from __future__ import annotations

from dataclasses import replace

from bench.catalogue import FULL, QUICK
from bench.harness.jobs import OURS
from bench.harness.measure import Plan
from bench.query.service import Keys
from bench.yardstick.drain import DrainMeasure
from bench.yardstick.latency import Stream

DRAIN = DrainMeasure("drain", events=1_000, devices=10)
STREAM = Stream("latency", rate=100, seconds=60, warm_s=5)
KEYS = Keys("keys", keys=100, rate=1, seconds=1)
PLAN = Plan((DRAIN, STREAM, KEYS))


def test_a_part_of_it() -> None:
    assert PLAN.only(["latency"]).measures == (STREAM,)


def test_another_size_is_named() -> None:
    resized = PLAN.sized(events=500, seconds=7)
    assert [resized.size(measure) for measure in resized.measures] == [
        "500 events of 10 devices",
        "100 events/s of 2,000 devices for 7 s",
        "500 keys of 500 bytes, 1 updates/s meanwhile, 7 s each",
    ]
    assert PLAN.sized(None, None) == PLAN


def test_so_is_another_length_of_batches_than_each_job_has() -> None:
    assert replace(PLAN, batch_s=15).size(DRAIN) == "1,000 events of 10 devices, batches of 15 s"


def test_a_quick_one_has_the_same_measures_at_other_sizes() -> None:
    assert [measure.name for measure in QUICK.measures] == [measure.name for measure in FULL.measures]
    assert not {QUICK.size(measure) for measure in QUICK.measures} & {FULL.size(measure) for measure in FULL.measures}


def test_our_job_is_the_first_of_each_measure() -> None:
    assert {measure.jobs[0].name for measure in FULL.measures} == {OURS}
