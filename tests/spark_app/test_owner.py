"""Jobs of two processes on one checkpoint: the second is refused while the first lives, and then takes it over."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.everything import NOW, event_record
from tests.spark_app.hosted import HostedJob
from tests.spark_app.pair import pair
from tests.spark_app.running import Job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_app.running import Topics


@pytest.mark.spark
def test_one_job_at_a_time_runs_on_a_checkpoint(spark: SparkSession, pair_topics: Topics, tmp_path: Path) -> None:
    pair_topics.send(
        pair_topics.names.events, [event_record({"device_id": "d", "event_id": "1", "first_seen": NOW, "ts": NOW})]
    )
    killed, frozen = (job(pair_topics, folder(tmp_path, name)) for name in ("killed", "frozen"))
    refused, last = (
        HostedJob(spark, pair_topics.kafka, folder(tmp_path, name), pair("ab")) for name in ("refused", "last")
    )
    try:
        killed.start().batches(1)
        assert refused.start().wait() == 1
        (ended,) = refused.lines("ended")
        assert "is in use by the job on" in ended["why"]
        killed.batches(1)
        assert not killed.lines("failed")
        killed.kill()

        frozen.start().batches(1)
        frozen.signal(signal.SIGSTOP)
        last.start().batches(1)
        frozen.signal(signal.SIGCONT)
        assert frozen.wait() == 1
        (ended,) = frozen.lines("ended")
        assert "lost the lease of the checkpoint" in ended["why"]
        last.batches(2)
        assert not last.lines("failed")
        assert len(pair_topics.read(pair_topics.names.snapshots, 1)) == 1
    finally:
        for one in (killed, frozen):
            if not one.ended():
                one.kill()
        last.stop()


def job(topics: Topics, folder: Path) -> Job:
    """Return a job of a process of its own."""
    return Job(topics.kafka, folder, "tests.spark_app.pair:app", {})


def folder(shared: Path, name: str) -> Path:
    """Return a folder for the log of a job, with the checkpoint that all share."""
    (shared / "checkpoint").mkdir(exist_ok=True)
    (shared / name).mkdir()
    (shared / name / "checkpoint").symlink_to(shared / "checkpoint")
    return shared / name
