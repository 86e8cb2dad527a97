"""Measures a job that is not Spark, so that it is the harness that is tested."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from bench.harness import topics
from bench.harness.drain import Drain
from bench.harness.errors import JobExitedError
from bench.harness.jobs import Job
from bench.harness.latency import Latency
from bench.harness.plan import BacklogPlan, Plan, Site, Stream
from bench.harness.process import RunningJob
from services.broker.readiness import wait_until

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

DRAIN = BacklogPlan("drain", events=2_000, devices=50)
STREAM = Stream("latency", rate=200, seconds=2, warm_s=1, devices=10)
PLAN = Plan((DRAIN, STREAM), runs=1, settle_s=0.5)
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
    return Drain(DRAIN, PLAN, site)


def test_an_honest_job_is_measured(drain: Drain) -> None:
    result = drain.measure(job("nothing"), 1, ignore)
    assert result.right, result
    assert result.figures["records_per_s"] > 0
    assert result.figures["cpu_s"] > 0
    assert result.figures["boundaries"] == 0


@pytest.mark.parametrize(("spoil", "what"), [("repeats", "duplicates"), ("lies", "wrong")])
def test_a_job_that_is_wrong_once_fails_its_run(drain: Drain, spoil: str, what: str) -> None:
    result = drain.measure(job(spoil), 1, ignore)
    assert not result.right
    assert result.report is not None
    assert getattr(result.report, what) == 1


def test_a_job_that_exits_is_reported_with_its_log(drain: Drain, site: Site) -> None:
    with pytest.raises(JobExitedError, match=str(site.log("drain-small-1"))):
        drain.measure(job("ends"), 1, ignore)


def test_every_job_drains_the_same_events(drain: Drain) -> None:
    first, second = (drain.measure(job("nothing"), run, ignore) for run in (1, 2))
    assert first.right, first
    assert second.right, second
    assert first.size == second.size == "2,000 events of 50 devices"


def test_the_topics_of_a_job_are_deleted_before_the_next_one(drain: Drain, site: Site) -> None:
    topics.renew(site.boot, ("a-job-device-changelog",))
    drain.measure(job("nothing"), 1, ignore)
    there = AdminClient({"bootstrap.servers": site.boot}).list_topics().topics
    assert not [name for name in there if name.endswith("-changelog")]


def test_latency_is_measured_for_the_requested_time(site: Site) -> None:
    result = Latency(STREAM, PLAN, site).measure(job("nothing"), 1, ignore)
    assert result.right, result
    figures = result.figures
    assert figures["events"] == pytest.approx(STREAM.rate * STREAM.seconds, rel=0.2)
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"]
    assert figures["boundaries"] == 0
    assert figures["late_p99_ms"] >= 0


def test_a_late_wrong_snapshot_fails_the_latency_too(site: Site) -> None:
    assert not Latency(STREAM, PLAN, site).measure(job("lies"), 1, ignore).right


def test_the_length_of_batches_is_the_jobs_own_unless_one_is_requested(site: Site) -> None:
    batched = Job("batched", ("sh", "-c", "echo batch $A_BATCH"), batch={"A_BATCH": "PT{batch_s}S"})
    for plan, output in ((PLAN, "batch\n"), (dataclasses.replace(PLAN, batch_s=15), "batch PT15S\n")):
        with RunningJob(batched, plan, site, "batched") as running:
            wait_until(running.group.ended, "it has ended", 10)
        assert running.log.read_text() == output
