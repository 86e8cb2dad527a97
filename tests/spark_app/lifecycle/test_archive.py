"""The archive of snapshots: each of them once, with the types of the declaration, also after a run that was stopped."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Record, timestamp_ms
from contracts.wire import decode_snapshot
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_producer
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.keeper import kept
from spark_app.checkpoint.lease import acquire, take_over
from spark_app.checkpoint.owner import this_job
from spark_app.lifecycle.archive import CHECKPOINT, TOPIC, archive
from spark_app.lifecycle.errors import ArchiveInUseError, ArchiveReplacedError
from spark_app.settings import JobSettings
from tests import everything
from tests.spark_app import running
from tests.spark_app.hosted import HostedCommand, done
from tests.spark_app.running import Job, Topics, until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message
    from pyspark.sql import SparkSession

    from contracts.wire import Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

BATCH = 25
FOREIGN = b'{"device_id": "no snapshot"}'


def snapshots(seed: int, events: int) -> list[Snapshot]:
    """Versions of some windows, with all fields and answers."""
    decoder, fold = Decoder(everything.app), Fold(everything.app, everything.EPOCH)
    sent, answered = everything.random_stream(seed, devices=5, events=events, answers=events // 4)
    deltas = [delta for record in sent for delta in decoder.event(record)]
    deltas += [decoder.feedback(record) for record in answered]
    return [snapshot for delta in deltas if (snapshot := fold.add(delta)) is not None]


def publish(topics: Topics, published: Iterable[Snapshot]) -> None:
    producer = create_producer({"bootstrap.servers": topics.kafka}, "test")
    for snapshot in published:
        producer.produce(topics.names.snapshots, snapshot.encode(), window_key(snapshot.device_id, snapshot.first_seen))
    assert producer.flush(60) == 0


def expected(message: Message) -> dict[str, Any]:
    """The row of a record, without nulls."""
    snapshot = decode_snapshot(message.value() or b"")
    document = json.loads(snapshot.encode())
    row = {
        "key": snapshot.device_id,
        "window_start": snapshot.first_seen,
        "epoch": snapshot.epoch,
        "version": snapshot.version,
        "as_of": snapshot.as_of,
        "state": document["state"],
        "enrichments": document["enrichments"],
        "partition": message.partition(),
        "offset": message.offset(),
    }
    comparable_row: dict[str, Any] = comparable(row)
    return comparable_row


def comparable(value: Any) -> Any:
    """A value without nulls in its structs, and with times as times: a model inside has them as texts."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, str) and value.endswith(("Z", "+00:00")) and "T" in value:
        return datetime.fromisoformat(value)
    return value


def logged(folder: Path) -> list[Path]:
    """The files that the log of Spark's sink has, as Spark reads them."""
    logs = [path for path in (folder / "_spark_metadata").iterdir() if path.suffix in ("", ".compact")]
    compacted = max((int(path.stem) for path in logs if path.suffix), default=-1)
    newer = [path for path in logs if (path.suffix and int(path.stem) == compacted) or int(path.stem) > compacted]
    lines = [line for path in newer for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [Path(unquote(urlsplit(json.loads(line)["path"]).path)) for line in lines]


def rows(files: Iterable[Path]) -> list[dict[str, Any]]:
    """All rows of files, in the order of the topic, without nulls."""
    archived = [comparable(row) for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(archived, key=lambda row: (row["partition"], row["offset"]))


def test_each_snapshot_is_archived_once_after_a_run_that_was_stopped(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    folder = tmp_path / "archive" / "everything"
    publish(topics, snapshots(1, 1500))
    environment = Job(topics.kafka, tmp_path, "tests.everything:app", {}).environment
    arguments = ("archive", str(folder.parent))
    run = HostedCommand(spark, environment, *arguments, "--batch", str(BATCH))
    until(lambda: run.poll() is not None or (folder / "_spark_metadata" / "1").exists(), "some batches")
    checkpoint = CheckpointFolder(spark, str(folder / CHECKPOINT))
    take_over(checkpoint, this_job(spark)).release()
    assert run.wait() == 1
    assert "lost the lease" in run.output
    before = rows(logged(folder))
    # A run that is killed leaves files that it has not logged.
    written = logged(folder)[-1]
    shutil.copy(written, written.with_name(f"copy-{written.name}"))
    publish(topics, snapshots(2, 100))
    now = timestamp_ms(everything.NOW)
    tombstone, foreign = (Record(topics.names.snapshots, 0, 0, now, b"d1", value) for value in (None, FOREIGN))
    topics.send(topics.names.snapshots, [tombstone, foreign])
    printed = done(spark, environment, *arguments)

    records = [
        message
        for message in running.everything(topics.kafka, topics.names.snapshots)
        if b'"version"' in (message.value() or b"")
    ]
    known = sorted(map(expected, records), key=lambda row: (row["partition"], row["offset"]))
    assert 0 < len(before) < len(known)
    assert rows(logged(folder)) == known
    everywhere = {(row["partition"], row["offset"]): row for row in rows(folder.glob("date=*/*.parquet"))}
    assert [*everywhere.values()] == known, "for readers that know no log, once copies of a record are removed"
    assert {path.parent.name for path in logged(folder)} == {f"date={everything.NOW:%Y-%m-%d}"}
    assert "1 records are no snapshots of this application" in printed

    schema = pq.read_schema(logged(folder)[0])
    kinds = {name: schema.field(name).type for name in ("key", "window_start", "version")}
    assert kinds == {"key": pa.string(), "window_start": pa.timestamp("us", "UTC"), "version": pa.int64()}
    state = schema.field("state").type
    assert (state.field("speed").type, state.field("due").type) == (pa.float64(), pa.timestamp("us", "UTC"))
    owner = schema.field("enrichments").type.field("owner").type
    assert owner.field("result").type.field("cars").type.value_type == pa.string()


def test_an_archive_of_another_topic_or_in_use_is_left_alone(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    settings = JobSettings(application="", kafka=topics.kafka)
    checkpoint = CheckpointFolder(spark, f"{tmp_path}/{CHECKPOINT}")
    checkpoint.write_new(TOPIC, "the id of an earlier topic")
    with pytest.raises(ArchiveReplacedError, match="name another folder"):
        archive(spark, everything.application(), settings, str(tmp_path))
    owner = acquire(checkpoint, this_job(spark))
    with kept(owner, lambda: False), pytest.raises(ArchiveInUseError, match="wait until it ends"):
        archive(spark, everything.application(), settings, str(tmp_path))


def test_deleted_snapshots_stop_a_run_that_does_not_skip_them(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    job = Job(topics.kafka, tmp_path, "tests.everything:app", {})
    run = partial(done, spark, job.environment, "archive", str(tmp_path / "archive"))
    archived, deleted, left = (snapshots(seed, 20) for seed in range(3))
    publish(topics, archived)
    run()
    publish(topics, deleted)
    topics.delete_all(topics.names.snapshots)
    publish(topics, left)
    assert "with --skip-deleted" in run(code=1).splitlines()[-1]
    run("--skip-deleted")
    assert len(rows(logged(tmp_path / "archive" / "everything"))) == len(archived) + len(left)
