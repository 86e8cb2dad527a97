"""The outputs of a decoder's task, without Spark and a broker, and its errors when the broker refuses them."""

from __future__ import annotations

import struct
from argparse import Namespace
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from contracts import Topics
from contracts.records.raw import EncodedEvent
from contracts.types.origin import PLACE, TIME
from spark_app.errors import MissingPackageError, RawWriteError
from spark_app.raw.decode import EventWriter, RawTask
from spark_app.raw.query import check_extra
from tests import waveforms

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MILLISECONDS = round(NOW.timestamp() * 1000)
EVENT = EncodedEvent(b"k", b"v")


class FakeProducer:
    """Has room for one record, and delivers it, or refuses it, when it is polled."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.written: list[tuple[str, bytes, bytes, int]] = []
        self._error = error
        self._waiting: deque[Any] = deque()

    def produce(self, topic: str, value: bytes, key: bytes, *, timestamp: int, on_delivery: Any) -> None:
        if self._waiting:
            raise BufferError
        self.written.append((topic, value, key, timestamp))
        self._waiting.append(on_delivery)

    def poll(self, timeout: float) -> None:
        if timeout:
            self.flush(timeout)

    def flush(self, _timeout: float) -> int:
        while self._waiting:
            self._waiting.popleft()(self._error, None)
        return 0


def test_a_full_queue_is_waited_for_and_each_record_has_the_given_time() -> None:
    producer = FakeProducer()
    writer = EventWriter(producer)  # type: ignore[arg-type]
    for _ in range(3):
        writer.write("events", EVENT, MILLISECONDS)
    writer.flush()
    assert producer.written == [("events", b"v", b"k", MILLISECONDS)] * 3


def test_a_record_that_the_broker_refuses_fails_the_task() -> None:
    writer = EventWriter(FakeProducer(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))  # type: ignore[arg-type]
    writer.write("events", EVENT, MILLISECONDS)
    with pytest.raises(RawWriteError, match="events"):
        writer.flush()


def test_a_task_writes_events_and_dead_letters_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = FakeProducer()
    monkeypatch.setattr("spark_app.raw.decode._writer", lambda _: EventWriter(producer))  # type: ignore[arg-type]
    right = struct.pack("<q8h", MILLISECONDS, *range(8))
    rows: list[dict[str, object]] = [
        {"value": right},
        {"value": right[:-1]},
        {"value": None},
        {"value": right, "headers": None},
    ]
    given: dict[str, object] = {"partition": 0, "offset": 5, "micros": 1000 * MILLISECONDS, "key": b"ann"}
    headers: dict[str, object] = {"headers": [{"key": "beds", "value": b"3"}]}
    batch = pa.RecordBatch.from_pylist([given | headers | row for row in rows])
    task = RawTask("tests.waveforms:app", "waveforms", waveforms.PACKED.topic, ())
    assert [one.to_pylist() for one in task(iter([batch, batch]))] == [[{"decoded": 2, "refused": 6}]]
    topics = waveforms.app.topics
    assert [topic for topic, *_ in producer.written] == [topics.events, *[topics.dead_letters] * 3] * 2


def test_each_application_that_reads_the_events_has_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    producer, app = FakeProducer(), waveforms.app
    other = Namespace(topics=Topics(prefix="other.", events=app.topics.events))
    strange = waveforms.prefixed("strange.")
    monkeypatch.setattr("spark_app.raw.decode._writer", lambda _: EventWriter(producer))  # type: ignore[arg-type]
    monkeypatch.setattr("spark_app.raw.decode.load_suite", lambda _: Namespace(applications=(app, other, strange)))
    given = {"partition": 0, "offset": 5, "micros": 1000 * MILLISECONDS, "key": b"ann", "headers": None, "value": b"x"}
    task = RawTask("several", app.name, waveforms.PACKED.topic, ())
    (counts,) = task(iter([pa.RecordBatch.from_pylist([given])]))
    assert counts.to_pylist() == [{"decoded": 0, "refused": 1}], "it is one record"
    assert [topic for topic, *_ in producer.written] == [app.topics.dead_letters, other.topics.dead_letters]


def test_a_redriven_record_gives_the_event_of_its_origin_at_the_time_of_the_redrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = FakeProducer()
    monkeypatch.setattr("spark_app.raw.decode._writer", lambda _: EventWriter(producer))  # type: ignore[arg-type]
    at = MILLISECONDS - 3_600_000
    origin = {PLACE: "raw/1/7", TIME: str(at), "beds": "3"}
    headers = [{"key": name, "value": value.encode()} for name, value in origin.items()]
    given = {"partition": 0, "offset": 5, "micros": 1000 * MILLISECONDS, "key": b"ann", "headers": headers}
    right = struct.pack("<q8h", at, *range(8))
    batch = pa.RecordBatch.from_pylist([given | {"value": value} for value in (right, right[:-1])])
    task = RawTask("tests.waveforms:app", "waveforms", waveforms.PACKED.topic, ())
    assert [one.to_pylist() for one in task(iter([batch]))] == [[{"decoded": 1, "refused": 1}]]
    (_, event, _, event_time), (_, dead_letter, _, _) = producer.written
    assert (orjson.loads(event)["event_id"], event_time) == ("raw/1/7", MILLISECONDS)
    letter = orjson.loads(dead_letter)
    assert (letter["partition"], letter["offset"]) == (0, 5)
    assert datetime.fromisoformat(letter["timestamp"]) == NOW - timedelta(hours=1)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_app.raw.query.find_spec", lambda name: None if name == "pyarrow" else name)
    with pytest.raises(MissingPackageError, match=r"needs the package pyarrow.*stateloop\[raw\]"):
        check_extra()
