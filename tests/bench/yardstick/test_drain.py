"""Measures a job that is not Spark, so that it is the harness that is tested."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from bench.harness import topics
from bench.harness.errors import JobExitedError
from bench.harness.jobs import BEFORE, Job
from bench.harness.measure import Site
from bench.harness.process import RunningJob
from bench.yardstick.drain import Drain, DrainMeasure
from bench.yardstick.jobs import StateJob
from bench.yardstick.latency import Latency, Stream
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

DRAIN = DrainMeasure("drain", events=2_000, devices=50)
STREAM = Stream("latency", rate=200, seconds=2, warm_s=1, devices=10)
SCRIPT = Path(__file__).with_name("a_job.py")


def ignore(what: str) -> None:
    assert what


def job(spoil: str) -> StateJob:
    return StateJob("small", (sys.executable, str(SCRIPT)), {"SPOIL": spoil})


@pytest.fixture
def site(broker: EmbeddedBroker, tmp_path: Path) -> Site:
    return Site(broker.bootstrap, tmp_path, tmp_path, settle_s=0.5)


@pytest.fixture
def drain(site: Site) -> Drain:
    return DRAIN.meter(site)


def test_an_honest_job_is_measured(drain: Drain) -> None:
    figures, report = drain.measure(job("nothing"), "honest", ignore)
    assert report.right, report
    assert figures["records_per_s"] > 0
    assert figures["cpu_s"] > 0
    assert figures["boundaries"] == 0


@pytest.mark.parametrize(("spoil", "what"), [("repeats", "duplicates"), ("lies", "wrong")])
def test_a_job_that_is_wrong_once_fails_its_run(drain: Drain, spoil: str, what: str) -> None:
    _, report = drain.measure(job(spoil), spoil, ignore)
    assert not report.right
    assert getattr(report, what) == 1


def test_a_job_that_exits_is_reported_with_its_log(drain: Drain, site: Site) -> None:
    with pytest.raises(JobExitedError, match=str(site.log("ends"))):
        drain.measure(job("ends"), "ends", ignore)


def test_every_job_drains_the_same_events(drain: Drain) -> None:
    for name in ("first", "second"):
        _, report = drain.measure(job("nothing"), name, ignore)
        assert report.right, report


def test_the_topics_of_a_job_are_deleted_before_the_next_one(drain: Drain, site: Site) -> None:
    topics.renew(site.boot, "a-job-device-changelog")
    drain.measure(job("nothing"), "next", ignore)
    there = AdminClient({"bootstrap.servers": site.boot}).list_topics().topics
    assert not [name for name in there if name.endswith("-changelog")]


def test_latency_is_measured_for_the_requested_time(site: Site) -> None:
    figures, report = Latency(STREAM, site).measure(job("nothing"), "honest", ignore)
    assert report.right, report
    assert figures["events"] == pytest.approx(STREAM.rate * STREAM.seconds, rel=0.2)
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"]
    assert figures["boundaries"] == 0
    assert figures["late_p99_ms"] >= 0


def test_a_late_wrong_snapshot_fails_the_latency_too(site: Site) -> None:
    _, report = Latency(STREAM, site).measure(job("lies"), "lies", ignore)
    assert not report.right


def output(job: Job, site: Site) -> str:
    with RunningJob(job, site, job.name) as running:
        wait_until(running.group.ended, "it has ended", DEADLINE_S)
    return running.log.read_text()


def test_the_length_of_batches_is_the_jobs_own_unless_one_is_requested(site: Site) -> None:
    batched = Job("batched", ("sh", "-c", "echo batch $A_BATCH"), batch={"A_BATCH": "PT{batch_s}S"})
    assert output(batched, site) == "batch\n"
    assert output(batched, replace(site, batch_s=15)) == "batch PT15S\n"


def test_a_job_of_another_checkout_runs_its_code(site: Site, tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").write_text("print('the other one')")
    ours = Job("ours", (sys.executable, "-c", "import bench"))
    assert output(ours, site) == ""
    before = ours.in_checkout(tmp_path)
    assert before.name == BEFORE
    assert output(before, site) == "the other one\n"
