"""Jobs of two processes on one checkpoint: the second is refused while the first lives.

It takes over from a frozen one. `test_catch_up` has a job that takes over from one that was killed.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.everything import NOW, event_record
from tests.spark_app.batches import SHORT
from tests.spark_app.hosted import HostedJob
from tests.spark_app.pair import pair
from tests.spark_app.running import Job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts.records.record import Record
    from tests.spark_app.running import Topics

MEANWHILE = 500
"""Events that come while a job is frozen."""


@pytest.mark.spark
def test_one_job_at_a_time_runs_on_a_checkpoint(spark: SparkSession, pair_topics: Topics, tmp_path: Path) -> None:
    pair_topics.send(pair_topics.names.events, [event("d")])
    frozen = Job(pair_topics.kafka, folder(tmp_path, "frozen"), "tests.spark_app.pair:app", SHORT)
    refused, last = (
        HostedJob(spark, pair_topics.kafka, folder(tmp_path, name), pair("ab"), SHORT) for name in ("refused", "last")
    )
    try:
        frozen.start().batches()
        assert refused.start().wait() == 1
        (ended,) = refused.lines("ended")
        assert "is in use by the job on" in ended["why"]
        frozen.batches()
        assert not frozen.lines("failed")
        frozen.signal(signal.SIGSTOP)
        last.start().batches()
        pair_topics.send(pair_topics.names.events, (event(f"d{number}") for number in range(MEANWHILE)))
        pair_topics.read(pair_topics.names.snapshots, 1 + MEANWHILE)
        frozen.signal(signal.SIGCONT)
        assert frozen.wait() == 1
        (ended,) = frozen.lines("ended")
        assert "lost the lease of the checkpoint" in ended["why"]
        last.batches()
        assert not last.lines("failed")
        assert len(pair_topics.read(pair_topics.names.snapshots, 1)) == 1 + MEANWHILE, "the frozen job publishes none"
    finally:
        if not frozen.ended():
            frozen.kill()
        last.stop()


@pytest.mark.spark
def test_a_job_of_an_older_checkpoint_ends_and_does_not_start_again(
    spark: SparkSession, pair_topics: Topics, tmp_path: Path
) -> None:
    (tmp_path / "older").mkdir()
    (tmp_path / "newer").mkdir()
    older, newer = (HostedJob(spark, pair_topics.kafka, tmp_path / name, pair("ab")) for name in ("older", "newer"))
    pair_topics.send(pair_topics.names.events, [event("d")])
    try:
        older.start().batches(1)
        newer.start().batches(1)
        assert older.wait() == 1
        assert "a job of another checkpoint writes the topics of 'pair'" in older.lines("ended")[-1]["why"]
        assert older.start().wait() == 1
        assert len(older.lines("ended")) == 2
        newer.batches(1)
        assert not newer.lines("gave_up")
    finally:
        older.stop()
        newer.stop()


def event(device: str) -> Record:
    """Return the event of a device."""
    return event_record({"device_id": device, "event_id": "1", "first_seen": NOW, "ts": NOW})


def folder(shared: Path, name: str) -> Path:
    """Return a folder for the log of a job, with the checkpoint that all share."""
    (shared / "checkpoint").mkdir(exist_ok=True)
    (shared / name).mkdir()
    (shared / name / "checkpoint").symlink_to(shared / "checkpoint")
    return shared / name
