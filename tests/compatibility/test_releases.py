"""The present code reads records of all topics, and a checkpoint, of earlier releases."""

from __future__ import annotations

import json
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from confluent_kafka import Producer

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import Record, RecordError, timestamp_ms
from contracts.wire import DeadLetter, DerivedRecord, Feedback, Snapshot, decode_snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key, parse_window_key
from services.runtime.kafka.admin import KafkaAdmin
from services.tools.topics.__main__ import make
from services.tools.topics.settings import TopicsSettings
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify
from tests.compatibility.recorded import app
from tests.compatibility.recorded import application as recorded_application
from tests.same import assert_same
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import everything, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from contracts import Topics
    from tests.services.tools.broker.embedded import EmbeddedBroker

HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "events.jsonl").exists())
PREFIX = "recorded."
WINDOW = datetime(2026, 5, 1, 8, tzinfo=UTC)


def recorded(release: str, topic: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a topic: partition, offset, timestamp, key and value."""
    for line in (HERE / release / f"{topic}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def values(release: str, topic: str) -> list[bytes]:
    return [one["value"].encode() for one in recorded(release, topic)]


def record(topic: str, one: dict[str, Any]) -> Record:
    key, value = one["key"].encode(), one["value"].encode()
    return Record(f"{PREFIX}{topic}", one["partition"], one["offset"], one["timestamp"], key, value)


def newest(release: str) -> dict[str, Snapshot]:
    """The snapshot of each courier that a reader would show."""
    found = sorted(map(decode_snapshot, values(release, "snapshots")), key=lambda one: one.order)
    return {one.device_id: one for one in found}


def test_a_release_is_recorded() -> None:
    assert "0.2.0" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_snapshots_and_their_keys_are_read(release: str) -> None:
    for one in recorded(release, "snapshots"):
        snapshot = decode_snapshot(one["value"].encode())
        assert parse_window_key(one["key"].encode()) == snapshot.window
        assert_same(json.loads(snapshot.encode()), json.loads(one["value"]))
    assert {len(one.enrichments) for one in newest(release).values()} == {1}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("topic", "model"),
    [("feedback", Feedback), ("plates", DerivedRecord), ("dead_letters", DeadLetter)],
)
def test_the_other_records_are_read(
    release: str, topic: str, model: type[Feedback | DerivedRecord | DeadLetter]
) -> None:
    for value in values(release, topic):
        assert_same(json.loads(model.model_validate_json(value).encode()), json.loads(value))
    if topic == "plates":
        for one in recorded(release, topic):
            found = DerivedRecord.model_validate_json(one["value"])
            assert one["key"].encode() == derived_key(found.key, found.device_id, found.first_seen)


@pytest.mark.parametrize("release", RELEASES)
def test_the_fold_of_recorded_events_and_answers_is_the_recorded_state(release: str) -> None:
    decoder, fold, refused = Decoder(app), Fold(app), 0
    for one in recorded(release, "events"):
        try:
            for delta in decoder.event(record("events", one)):
                fold.add(delta)
        except RecordError:
            refused += 1
    for one in recorded(release, "feedback"):
        fold.add(decoder.feedback(record("feedback", one)))
    state = newest(release)
    assert refused == 1
    for (courier, start), merged in fold.windows.items():
        wanted = present(app, (courier, start), merged, state[courier].epoch)
        assert_same(state[courier].model_dump(mode="json"), wanted.model_dump(mode="json"))


@pytest.mark.parametrize("model", [Feedback, DerivedRecord, DeadLetter, Snapshot])
def test_a_record_of_a_later_format_is_rejected(model: type[Feedback]) -> None:
    topic = {Feedback: "feedback", DerivedRecord: "plates", DeadLetter: "dead_letters", Snapshot: "snapshots"}[model]
    content = json.loads(values("0.2.0", topic)[0])
    assert model.model_validate(content | {"format": 1}).format == 1
    with pytest.raises(ValueError, match="format"):
        model.model_validate(content | {"format": 2})


@pytest.mark.spark
@pytest.mark.parametrize("release", RELEASES)
def test_the_job_continues_a_checkpoint(
    spark: SparkSession, release: str, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """The topics have the records that the release read; the checkpoint gets their ids."""
    application = recorded_application(PREFIX)
    kafka, topics = broker.bootstrap, application.topics
    make(
        KafkaAdmin({"bootstrap.servers": kafka}, "test"),
        application.catalogue(),
        TopicsSettings(application="", kafka=kafka),
    )
    for topic in ("events", "feedback"):
        send(kafka, [record(topic, one) for one in recorded(release, topic)])
    with tarfile.open(HERE / release / "checkpoint.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    file = tmp_path / "checkpoint" / "stateloop.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    found = identify(JobSettings(application="", kafka=kafka), application)
    content["identity"]["topics"] = {one.name: one.facts() for one in found}
    file.write_text(json.dumps(content), encoding="utf-8")
    job = HostedJob(spark, kafka, tmp_path, application)
    state, later = newest(release), WINDOW + timedelta(hours=1)
    job.start()
    try:
        send(kafka, [ping(courier, later) for courier in state])
        wanted = {courier: one.version + 1 for courier, one in state.items()}
        until(
            lambda: {one.device_id: one.version for one in published(kafka, topics)} == wanted,
            f"versions, see {job.log}",
        )
    finally:
        job.stop()
    for one in published(kafka, topics):
        before = state[one.device_id]
        assert (one.epoch, one.enrichments, one.state["plate"]) == (
            before.epoch,
            before.enrichments,
            before.state["plate"],
        )
        assert (one.state["pings"], one.state["top_speed"]) == (before.state["pings"] + 1, 99.0)


def ping(courier: str, ts: datetime) -> Record:
    """An event after those that were recorded."""
    event = {"device_id": courier, "event_id": "later", "first_seen": WINDOW, "ts": ts, "speed": 99.0}
    key = courier.encode()
    return Record(f"{PREFIX}events", partition(key, 2), 0, timestamp_ms(ts), key, orjson.dumps(event))


def send(kafka: str, records: list[Record]) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    for one in records:
        producer.produce(one.topic, one.value, one.key, one.partition, timestamp=one.timestamp_ms)
    assert producer.flush(30) == 0


def published(kafka: str, topics: Topics) -> list[Snapshot]:
    """The newest snapshot of each courier on the topic."""
    found = [decode_snapshot(one.value() or b"") for one in everything(kafka, topics.snapshots)]
    return list({one.device_id: one for one in sorted(found, key=lambda one: one.order)}.values())
