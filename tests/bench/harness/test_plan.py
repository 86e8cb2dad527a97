from __future__ import annotations

from dataclasses import replace

from bench.harness.plan import FULL, QUICK, BacklogPlan, Stream

DRAIN = BacklogPlan("drain", events=1_000, devices=10)
STREAM = Stream("latency", rate=100, seconds=60, warm_s=5)
PLAN = replace(FULL, measures=(DRAIN, STREAM))


def test_a_part_of_it() -> None:
    assert PLAN.only(["latency"]).measures == (STREAM,)


def test_another_size_is_named() -> None:
    drain, stream = PLAN.sized(events=500, seconds=7).measures
    assert PLAN.size(drain) == "500 events of 10 devices"
    assert PLAN.size(stream) == "100 events/s of 2,000 devices for 7 s"
    assert PLAN.sized(None, None) == PLAN


def test_so_is_a_device_that_is_busier_than_the_others() -> None:
    assert "of 2,000 devices, one of them with 20%, for 60 s" in PLAN.size(replace(STREAM, hot=0.2))


def test_so_is_another_length_of_batches_than_each_job_has() -> None:
    assert replace(PLAN, batch_s=15).size(DRAIN) == "1,000 events of 10 devices, batches of 15 s"


def test_a_quick_one_has_the_same_measures_at_other_sizes() -> None:
    assert [one.name for one in QUICK.measures] == [one.name for one in FULL.measures]
    assert not {QUICK.size(one) for one in QUICK.measures} & {FULL.size(one) for one in FULL.measures}
