"""The real query on a real broker: real-time mode, union, state in RocksDB."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pyspark.sql import functions as F  # noqa: N812

from contracts.records.fold import present
from contracts.records.record import Record
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from spark_app import checks
from spark_app.checkpoint import CheckpointFile, identity
from spark_app.columns import REASON
from tests import everything, hostile
from tests.everything import NOW, answer_record, event_record
from tests.same import assert_same
from tests.spark_app.cluster import Cluster
from tests.spark_app.folding import folded
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import CHECKOUT, Job, Topics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, SparkSession

    from spark_app.checks import Case

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
    topics.read(topics.names.snapshots, new)
    job.batches(2)
    found = snapshots(topics.read(topics.names.snapshots, new))
    assert sum(map(len, found.values())) == new
    for window, partial in fold.windows.items():
        assert [snapshot.version for snapshot in found[window]] == list(range(1, partial.version + 1))
        last = present(everything.app, window, partial, job.epoch())
        assert_same(found[window][-1].model_dump(mode="json"), last.model_dump(mode="json"))
    figures, batches = job.figures(), job.lines("batch")
    assert figures["written_total", "everything"] == new
    assert figures["records_total", "everything", topics.names.events] == len(events)
    assert figures["records_total", "everything", topics.names.feedback] == len(answers)
    assert figures["copies_total", "everything"] == len(events) + len(answers) - new
    assert figures["batches_total", "everything"] >= len(batches)
    assert figures["state_keys", "everything", "StatefulStreamlineAggregate"] == len(fold.windows)
    assert 0 < figures["pause_seconds", "everything"] < figures["batch_seconds", "everything"]


def test_a_state_is_gone_after_its_window_and_late_feedback_does_not_bring_it_back(
    topics: Topics, little_job: HostedJob
) -> None:
    old, later = NOW - timedelta(hours=3), NOW
    early = {"device_id": "old", "event_id": "1", "first_seen": old, "ts": old}
    topics.send(topics.names.events, [_at(event_record(early), old)])
    topics.read(topics.names.snapshots, 1)
    topics.send(topics.names.events, [event_record(early | {"device_id": "new", "first_seen": later, "ts": later})])
    topics.read(topics.names.snapshots, 2)
    batches = little_job.batches(4)
    assert sum(batch["expired"] for batch in batches) >= 1
    answer = {"device_id": "old", "first_seen": old, "version": 1, "ts": old, "fingerprint": "f"}
    late = answer_record(answer | {"answer": ("owner", "absence", None)})
    topics.send(topics.names.feedback, [_at(late, old + timedelta(minutes=1)), _at(late, later)])
    letters = topics.read(topics.names.dead_letters, 1)
    batches = little_job.batches(3)
    assert [DeadLetter.model_validate_json(letter.value() or b"").reason for letter in letters] == ["late"]
    assert sum(batch["late"] for batch in batches) == 1
    assert {window[0]: len(them) for window, them in snapshots(topics.read(topics.names.snapshots, 2)).items()} == {
        "old": 1,
        "new": 1,
    }


def test_a_clock_ahead_by_less_than_the_skew_expires_no_window_sooner(topics: Topics, little_job: HostedJob) -> None:
    begin, end = NOW - timedelta(hours=2), NOW - timedelta(hours=2) + everything.KEPT_FOR
    old = {"device_id": "old", "event_id": "1", "first_seen": begin, "ts": begin}
    ahead = {"device_id": "ahead", "event_id": "1", "first_seen": end + timedelta(seconds=50), "ts": end}
    topics.send(topics.names.events, [_at(event_record(old), begin), _at(event_record(ahead), end)])
    topics.read(topics.names.snapshots, 2)
    little_job.batches(3)
    topics.send(topics.names.events, [_at(event_record(old | {"event_id": "2"}), end)])
    found = snapshots(topics.read(topics.names.snapshots, 3))
    assert [snapshot.version for snapshot in found["old", begin]] == [1, 2]


def test_rubbish_of_another_time_expires_no_window_in_a_replay(topics: Topics, little_job: HostedJob) -> None:
    event = {"device_id": "old", "event_id": "1", "first_seen": NOW, "ts": NOW}
    rubbish = Record("", 0, 0, datetime.now(UTC), b"k", b"rubbish")
    topics.send(topics.names.events, [event_record(event), rubbish])
    topics.read(topics.names.dead_letters, 1)
    little_job.batches(3)
    topics.send(topics.names.events, [event_record(event | {"event_id": "2"})])
    found = snapshots(topics.read(topics.names.snapshots, 2))
    assert [snapshot.version for snapshot in found["old", NOW]] == [1, 2]


def test_a_state_too_large_to_be_published_is_a_dead_letter_and_the_job_goes_on(topics: Topics, job: HostedJob) -> None:
    large = {"device_id": "large", "first_seen": NOW, "ts": NOW}
    small = {"device_id": "small", "event_id": "1", "first_seen": NOW, "ts": NOW}
    grown = [event_record(large | {"event_id": letter, "name": letter * 150_000}) for letter in "abc"]
    topics.send(topics.names.events, grown)
    letters = topics.read(topics.names.dead_letters, 2)
    topics.send(topics.names.events, [event_record(small)])
    until_small = topics.read(topics.names.snapshots, 2)
    letter = DeadLetter.model_validate_json(letters[0].value() or b"")
    assert (letter.reason, letter.topic, letter.partition) == ("large_snapshot", topics.names.snapshots, -1)
    assert '"device_id":"large"' in (letter.head or "")
    assert {window[0] for window in snapshots(until_small)} == {"large", "small"}
    assert not job.lines("failed")


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


def test_a_checkpoint_of_a_newer_release_is_refused_by_the_job(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "stateloop.json").write_bytes(orjson.dumps({"format": 2, "field": "new"}))
    job = HostedJob(spark, topics.kafka, tmp_path, everything.application()).start()
    assert job.wait() == 1
    (ended,) = job.lines("ended")
    assert "it has format 2, this release reads format 1. Start the release that wrote it" in ended["why"]


def unchecked(cases: list[Case]) -> Column:  # noqa: ARG001  # as what it stands for
    """The reason of refusal before keys and times are compared."""
    return F.col(REASON)


@pytest.mark.parametrize("survives", [True, False])
def test_a_clock_two_hours_ahead_expires_no_window(
    spark: SparkSession, now_topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, survives: bool
) -> None:
    """And without the check of the time, it does."""
    topics, now = now_topics, datetime.now(UTC)
    if not survives:
        monkeypatch.setattr(checks, "checked", unchecked)
    job = HostedJob(spark, topics.kafka, tmp_path, everything.application(everything.Little)).start()
    try:
        honest = {"device_id": "honest", "event_id": "1", "first_seen": now, "ts": now}
        wrong = {"device_id": "wrong", "event_id": "1", "first_seen": now + timedelta(hours=2), "ts": now}
        topics.send(topics.names.events, [event_record(honest), event_record(wrong)])
        read, count = (topics.names.dead_letters, 1) if survives else (topics.names.snapshots, 2)
        topics.read(read, count)
        # The end of the batch before may not be reported yet, and a batch's late ones are those by the last but one.
        job.batches(3)
        topics.send(topics.names.events, [event_record(honest | {"event_id": "2"})])
        if survives:
            found = snapshots(topics.read(topics.names.snapshots, 2))
            assert [snapshot.version for snapshot in found["honest", now]] == [1, 2]
            (letter,) = topics.read(topics.names.dead_letters, 1)
            assert DeadLetter.model_validate_json(letter.value() or b"").reason == "incredible_time"
        else:
            batches = job.batches(2)
            assert sum(batch["late"] for batch in batches) == 1
            assert sum(batch["expired"] for batch in batches) >= 1
    finally:
        job.stop()


def _at(record: Record, time: datetime) -> Record:
    return Record(record.topic, record.partition, record.offset, time, record.key, record.value)


def test_hostile_records_never_stop_the_query(topics: Topics, job: HostedJob) -> None:
    keyed = [(key, value) for key, value in hostile.keyed() if value is None or len(value) < 900_000]
    records = [Record("", 0, 0, NOW, key, value) for key, value in keyed]
    topics.send(topics.names.events, [*records, event_record(orjson.loads(hostile.good(device_id="last")))])
    topics.read(topics.names.dead_letters, 400)
    job.batches(2)
    assert not job.lines("failed")
    assert ("last", NOW - timedelta(minutes=5)) in snapshots(topics.read(topics.names.snapshots, 1))


def test_runs_unchanged_when_submitted_to_a_cluster(topics: Topics, tmp_path: Path) -> None:
    events, answers = everything.random_stream(2, devices=30, events=300, answers=50)
    fold, new = folded(topics, events, answers)
    jars = sorted(str(jar) for jar in (CHECKOUT / ".stateloop/jars/spark").glob("*.jar"))
    environment = {
        "EVERYTHING_PREFIX": topics.names.prefix,
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
    }
    with Cluster(tmp_path, slots=8) as cluster:
        command = tuple(cluster.submit(jars))
        job = Job(topics.kafka, tmp_path, "tests.everything:app", environment, command).start()
        try:
            found = snapshots(topics.read(topics.names.snapshots, new))
        finally:
            job.stop()
    assert sum(map(len, found.values())) == new
    for window, partial in fold.windows.items():
        last = present(everything.app, window, partial, job.epoch())
        assert_same(found[window][-1].model_dump(mode="json"), last.model_dump(mode="json"))
