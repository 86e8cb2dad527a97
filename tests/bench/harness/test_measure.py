"""Measures a job that is not Spark, so that it is the harness that is tested."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.harness.drain import Drain
from bench.harness.errors import JobEnded
from bench.harness.jobs import Job
from bench.harness.latency import WHOLE, WITHIN, Latency
from bench.harness.plan import Plan, Site

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

PLAN = Plan(runs=1, events=2_000, devices=50, rate=200, rate_devices=10, batch_s=2, settle_s=0.5)
SCRIPT = Path(__file__).with_name("a_job.py")


def ignore(what: str, done: float) -> None:
    assert what
    assert done >= 0


def job(spoil: str) -> Job:
    return Job("small", (sys.executable, str(SCRIPT)), {"SPOIL": spoil})


@pytest.fixture
def site(broker: EmbeddedBroker, tmp_path: Path) -> Site:
    return Site(broker.bootstrap, tmp_path, tmp_path)


@pytest.fixture
def drain(site: Site) -> Drain:
    filled = Drain(PLAN, site)
    filled.fill(ignore)
    return filled


def test_an_honest_job_is_measured(drain: Drain) -> None:
    (result,) = drain.measure(job("nothing"), 1, ignore)
    assert result.right, result
    assert result.figures["records_per_s"] > 0
    assert result.figures["cpu_s"] > 0
    assert result.figures["boundaries"] == 0


@pytest.mark.parametrize(("spoil", "what"), [("repeats", "duplicates"), ("lies", "wrong")])
def test_a_job_that_is_wrong_once_fails_its_run(drain: Drain, spoil: str, what: str) -> None:
    (result,) = drain.measure(job(spoil), 1, ignore)
    assert not result.right
    assert result.verdict is not None
    assert getattr(result.verdict, what) == 1


def test_a_job_that_ends_is_told_with_its_log(drain: Drain, site: Site) -> None:
    with pytest.raises(JobEnded, match=str(site.log("drain-small-1"))):
        drain.measure(job("ends"), 1, ignore)


def test_latency_is_measured_over_a_part_and_over_the_whole(site: Site) -> None:
    results = Latency(PLAN, site).measure(job("nothing"), 1, ignore)
    assert [result.measure for result in results] == [WITHIN, WHOLE]
    part, whole = (result.figures for result in results)
    assert all(result.right for result in results), results
    assert part["events"] < whole["events"]
    assert whole["events"] == pytest.approx(PLAN.rate * PLAN.batch_s, rel=0.2)
    assert 0 < part["p50_ms"] <= part["max_ms"] <= whole["max_ms"]


def test_a_late_wrong_snapshot_fails_the_latency_too(site: Site) -> None:
    plan = dataclasses.replace(PLAN, batch_s=1)
    assert not any(result.right for result in Latency(plan, site).measure(job("lies"), 1, ignore))
