"""Records with keys that no producer may write back, on the running job: a dead letter each, and the job goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from contracts.types.key import LARGEST_KEY
from contracts.wire import DeadLetter
from tests.everything import NOW, event_record
from tests.spark_app.running import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.records.record import Record
    from tests.spark_app.hosted import HostedJob
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
"""The key of a record, and that of its dead letter."""


def test_a_record_with_any_key_is_one_dead_letter_and_the_job_goes_on(topics: Topics, little_job: HostedJob) -> None:
    topics.send(topics.names.events, [good("first")])
    topics.read(topics.names.snapshots, 1)
    send(topics, KEYS)
    letters = topics.read(topics.names.dead_letters, len(KEYS))
    little_job.batches(3)
    topics.send(topics.names.events, [good("last")])
    topics.read(topics.names.snapshots, 2)
    assert len(topics.read(topics.names.dead_letters, len(KEYS))) == len(KEYS)
    assert {letter.key() for letter in letters} == set(KEYS.values())
    origins = [DeadLetter.model_validate_json(letter.value() or b"") for letter in letters]
    assert len({(one.topic, one.partition, one.offset) for one in origins}) == len(KEYS)
    assert {one.reason for one in origins} == {"wrong_key"}
    assert not little_job.lines("failed")
    assert len(little_job.lines("started")) == 1


def good(device: str) -> Record:
    """An event of a device of its own."""
    return event_record({"device_id": device, "event_id": "1", "first_seen": NOW, "ts": NOW})


def send(topics: Topics, keys: Iterable[bytes | None]) -> None:
    """Send an event under each key, compressed where the broker would not take it as it is."""
    errors: list[object] = []
    for key in keys:
        packed = {"compression.type": "gzip"} if len(key or b"") > LARGEST_PLAIN else {}
        producer = Producer({"bootstrap.servers": topics.kafka, "message.max.bytes": 64_000_000, **packed})
        producer.produce(topics.names.events, good("d").value, key, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
    assert set(errors) == {None}
