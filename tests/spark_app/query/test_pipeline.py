"""The real query on a real broker: real-time mode, union, state in RocksDB."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.records.fold import present
from contracts.records.record import Record, timestamp_ms
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import activate
from spark_app.checkpoint.identity import CheckpointFile, identity
from tests import everything
from tests.everything import NOW, answer_record, event_record
from tests.same import assert_same
from tests.spark_app.batches import committed
from tests.spark_app.cluster import Cluster
from tests.spark_app.folding import folded
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import CHECKOUT, Job, Topics, until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def snapshots(messages: list[Any]) -> dict[tuple[str, datetime], list[Snapshot]]:
    """The published snapshots of each window, as they came."""
    windows: dict[tuple[str, datetime], list[Snapshot]] = {}
    for message in messages:
        snapshot = decode_snapshot(message.value())
        windows.setdefault(snapshot.window, []).append(snapshot)
    return windows


def test_each_new_record_gives_one_snapshot_and_the_last_equals_the_fold(topics: Topics, job: HostedJob) -> None:
    events, answers = everything.random_stream(1, devices=60, events=900, answers=100)
    fold, new = folded(topics, events, answers)
    committed(job, len(events) + len(answers))
    by_window = snapshots(topics.read(topics.names.snapshots, new))
    assert sum(map(len, by_window.values())) == new
    for window, partial in fold.windows.items():
        assert [snapshot.version for snapshot in by_window[window]] == list(range(1, partial.version + 1))
        last = present(everything.app, window, partial, job.epoch())
        assert_same(by_window[window][-1].model_dump(mode="json"), last.model_dump(mode="json"))
    keys = "state_keys", "everything", "StatefulStreamlineAggregate"
    until(lambda: job.figures().get(keys) == len(fold.windows), "a batch that visits every key, as all do at their end")
    figures, batches = job.figures(), job.lines("batch")
    assert figures["written_total", "everything"] == new
    assert figures["records_total", "everything", topics.names.events] == len(events)
    assert figures["records_total", "everything", topics.names.feedback] == len(answers)
    assert figures["copies_total", "everything"] == len(events) + len(answers) - new
    assert figures["batches_total", "everything"] >= len(batches)
    assert 0 < figures["pause_seconds", "everything"] < figures["batch_seconds", "everything"]


def test_a_window_ends_when_later_records_have_passed_it_and_late_feedback_does_not_bring_it_back(
    topics: Topics, little_job: HostedJob
) -> None:
    begin, end = NOW - timedelta(hours=2), NOW - timedelta(hours=2) + everything.KEPT_FOR
    old = {"device_id": "old", "event_id": "1", "first_seen": begin, "ts": begin}
    # A clock that is ahead by less than the skew, and rubbish of the present in a replay, end no window.
    ahead = {"device_id": "ahead", "event_id": "1", "first_seen": end + timedelta(seconds=50), "ts": end}
    rubbish = Record("", 0, 0, timestamp_ms(datetime.now(UTC)), b"k", b"rubbish")
    topics.send(topics.names.events, [_at(event_record(old), begin), _at(event_record(ahead), end), rubbish])
    assert not any(batch["expired"] for batch in committed(little_job, 3, more=1))
    topics.send(topics.names.events, [_at(event_record(old | {"event_id": "2"}), end)])
    topics.read(topics.names.snapshots, 3)
    # A record of a later time does.
    topics.send(topics.names.events, [event_record(old | {"device_id": "new", "first_seen": NOW, "ts": NOW})])
    until(lambda: any(batch["expired"] for batch in little_job.lines("batch")), "the end of the window")
    answer = {"device_id": "old", "first_seen": begin, "version": 1, "ts": begin, "fingerprint": "f"}
    late = answer_record(answer | {"answer": ("owner", "absence", None)})
    topics.send(topics.names.feedback, [_at(late, begin + timedelta(minutes=1)), _at(late, NOW)])
    assert sum(batch["late"] for batch in committed(little_job, 7)) == 1
    letters = topics.read(topics.names.dead_letters, 2)
    assert [DeadLetter.model_validate_json(letter.value() or b"").reason for letter in letters] == ["malformed", "late"]
    by_window = snapshots(topics.read(topics.names.snapshots, 4))
    assert {device: [snapshot.version for snapshot in versions] for (device, _), versions in by_window.items()} == {
        "old": [1, 2],
        "ahead": [1],
        "new": [1],
    }


def test_a_checkpoint_of_other_topics_is_refused_by_the_job(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    (tmp_path / "checkpoint").mkdir()
    other = identity(everything.app, [], 9)
    file = CheckpointFile(format=1, epoch=1, identity=other)
    (tmp_path / "checkpoint" / "stateloop.json").write_text(file.model_dump_json(), encoding="utf-8")
    job = HostedJob(spark, topics.kafka, tmp_path, everything.application()).start()
    assert job.wait() == 1
    (ended,) = job.lines("ended")
    assert "belongs to another job: its state has 9 partitions, this job 2; it read topic" in ended["why"]
    assert "run `stateloop rebuild`" in ended["why"]


def test_a_lost_generation_that_is_active_is_refused_by_the_job(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """Its job would publish lower versions under the epoch of the lost state, which readers drop."""
    activate(CheckpointFolder(spark, str(tmp_path / "checkpoint")), "generation-7", 9, 0)
    job, lost = HostedJob(spark, topics.kafka, tmp_path, everything.application()), tmp_path / "checkpoint/generation-7"
    job.start()
    until(lambda: job.ended() or lost.exists(), "an error")
    assert job.stop() == 1
    (ended,) = job.lines("ended")
    assert f"{lost} is the active generation of the checkpoint, and has no stateloop.json" in ended["why"]
    assert not lost.exists()


def test_a_checkpoint_of_a_newer_release_is_refused_by_the_job(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "stateloop.json").write_bytes(orjson.dumps({"format": 2, "field": "new"}))
    job = HostedJob(spark, topics.kafka, tmp_path, everything.application()).start()
    assert job.wait() == 1
    (ended,) = job.lines("ended")
    assert "it has format 2, this release reads format 1. Start the release that wrote it" in ended["why"]


def _at(record: Record, time: datetime) -> Record:
    return record._replace(timestamp_ms=timestamp_ms(time))


def test_runs_unchanged_when_submitted_to_a_cluster(topics: Topics, tmp_path: Path) -> None:
    events, answers = everything.random_stream(2, devices=30, events=300, answers=50)
    fold, new = folded(topics, events, answers, everything.little)
    jars = sorted(str(jar) for jar in (CHECKOUT / ".stateloop/jars/spark").glob("*.jar"))
    environment = {
        "EVERYTHING_PREFIX": topics.names.prefix,
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
    }
    with Cluster(tmp_path, slots=8) as cluster:
        command = tuple(cluster.submit(jars))
        job = Job(topics.kafka, tmp_path, "tests.everything:little", environment, command).start()
        try:
            by_window = snapshots(topics.read(topics.names.snapshots, new))
        finally:
            job.stop()
    assert sum(map(len, by_window.values())) == new
    for window, partial in fold.windows.items():
        last = present(everything.little, window, partial, job.epoch())
        assert_same(by_window[window][-1].model_dump(mode="json"), last.model_dump(mode="json"))
