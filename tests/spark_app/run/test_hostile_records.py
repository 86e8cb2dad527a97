"""Records that no state takes, and that no producer may write back, on the running job: a dead letter each."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import orjson
import pytest
from confluent_kafka import Producer

from contracts import Distinct
from contracts.records.record import Record, timestamp_ms
from contracts.types.key import LARGEST_KEY
from contracts.wire import DeadLetter, decode_snapshot
from tests import everything, hostile
from tests.everything import NOW, event_record
from tests.spark_app.batches import SHORT, committed
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_app.running import Topics

LARGEST_PLAIN = 1_048_400
"""In bytes: the largest key that a broker takes uncompressed, with a small record."""
pytestmark = [pytest.mark.spark, pytest.mark.kafka]

KEYS = {
    b"k" * LARGEST_PLAIN: b"k" * LARGEST_KEY,
    b"c" * 8_000_000: b"c" * LARGEST_KEY,  # compressed it is small
    "鍵".encode() * 300_000: "鍵".encode() * (LARGEST_KEY // 3),
    b"\xff" * 1_000: b"\xff" * LARGEST_KEY,
    b"\xc3": b"\xc3",
    b"": b"",
    None: None,
}
"""The key of a record, and the key of its dead letter."""


class Growing(everything.Little, lifetime=timedelta(hours=1)):
    """A state that grows with each name."""

    names: Annotated[list[str], Distinct(9, of="name")]


@pytest.fixture
def job(spark: SparkSession, topics: Topics, tmp_path: Path) -> Iterator[HostedJob]:
    """Give the running job of the growing state."""
    running = HostedJob(spark, topics.kafka, tmp_path, everything.application(Growing), SHORT)
    yield running.start()
    running.stop()


def test_each_record_that_cannot_be_merged_or_published_is_one_dead_letter_and_the_job_goes_on(
    topics: Topics, job: HostedJob
) -> None:
    send(topics, KEYS)
    by_key = topics.read(topics.names.dead_letters, len(KEYS))
    committed(job, len(KEYS))
    assert len(topics.read(topics.names.dead_letters, len(KEYS))) == len(KEYS)
    assert {letter.key() for letter in by_key} == set(KEYS.values())
    origins = [DeadLetter.model_validate_json(letter.value() or b"") for letter in by_key]
    assert len({(letter.topic, letter.partition, letter.offset) for letter in origins}) == len(KEYS)
    assert {letter.reason for letter in origins} == {"wrong_key"}

    large = {"device_id": "large", "first_seen": NOW, "ts": NOW}
    grown = [event_record(large | {"event_id": letter, "name": letter * 200_000}) for letter in "abcde"]
    topics.send(topics.names.events, grown)
    letters = topics.read(topics.names.dead_letters, len(KEYS) + 2)
    too_large = [
        DeadLetter.model_validate_json(message.value() or b"") for message in letters if message.key() == b"large"
    ]
    named = [(letter.reason, letter.topic, letter.partition) for letter in too_large]
    assert named == [("large_snapshot", topics.names.snapshots, -1)] * 2
    assert all('"device_id":"large"' in (letter.head or "") for letter in too_large)

    keyed = [(key, value) for key, value in hostile.keyed() if value is None or len(value) < 900_000]
    records = [Record("", 0, 0, timestamp_ms(NOW), key, value) for key, value in keyed]
    last = event_record(orjson.loads(hostile.good(device_id="last")))
    topics.send(topics.names.events, [*records, last])
    committed(job, len(KEYS) + len(grown) + len(records) + 1)
    topics.read(topics.names.dead_letters, len(letters) + 400)
    snapshots = [decode_snapshot(message.value() or b"") for message in topics.read(topics.names.snapshots, 1)]
    assert [snapshot.version for snapshot in snapshots if snapshot.device_id == "large"] == [1, 2, 3]
    assert "last" in {snapshot.device_id for snapshot in snapshots}
    assert not job.lines("failed")
    assert len(job.lines("started")) == 1


def send(topics: Topics, keys: Iterable[bytes | None]) -> None:
    """Send an event under each key, compressed where the broker would not take it as it is."""
    value = event_record({"device_id": "d", "event_id": "1", "first_seen": NOW, "ts": NOW}).value
    errors: list[object] = []
    for key in keys:
        packed = {"compression.type": "gzip"} if len(key or b"") > LARGEST_PLAIN else {}
        producer = Producer({"bootstrap.servers": topics.kafka, "message.max.bytes": 64_000_000, **packed})
        producer.produce(topics.names.events, value, key, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
    assert set(errors) == {None}
