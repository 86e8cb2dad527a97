"""The outputs of a decoder's task, without Spark and a broker, and its errors when the broker refuses them."""

from __future__ import annotations

import struct
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pytest

from contracts import Topics
from contracts.types.origin import PLACE, TIME
from services.runtime.errors import DeliveryFailedError
from spark_app.errors import MissingPackageError, RawWriteError
from spark_app.raw.decode import RawTask
from spark_app.raw.query import check_extra
from tests import waveforms

if TYPE_CHECKING:
    from services.runtime.kafka.values import Output

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MILLISECONDS = round(NOW.timestamp() * 1000)


class FakeProducer:
    """Takes records, and may refuse them in the end. Implements a part of BlockingProducer."""

    def __init__(self, error: DeliveryFailedError | None = None) -> None:
        self.written: list[tuple[str, bytes | None, bytes | None, int]] = []
        self._error = error

    def enqueue(self, output: Output) -> None:
        self.written.append((output.topic, output.value, output.key, output.timestamp_ms))

    def flush(self) -> int:
        if self._error:
            raise self._error
        return 0


def test_a_record_that_the_broker_refuses_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def create(*_: object, **__: object) -> FakeProducer:
        made.append(1)
        return FakeProducer(DeliveryFailedError("events", "TOPIC_AUTHORIZATION_FAILED", "denied"))

    monkeypatch.setattr("spark_app.raw.decode.BlockingKafkaProducer", create)
    task = RawTask("tests.waveforms:app", "waveforms", waveforms.PACKED.topic, (("client", "of this test"),))
    for _ in range(2):
        with pytest.raises(RawWriteError, match=r"topic 'events' does not take decoded events \(denied"):
            list(task(iter([])))
    assert len(made) == 2, "the failed producer is not used again"


def test_a_task_writes_events_and_dead_letters_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = FakeProducer()
    monkeypatch.setattr("spark_app.raw.decode._producer", lambda _: producer)
    right = struct.pack("<q8h", MILLISECONDS, *range(8))
    rows: list[dict[str, object]] = [
        {"value": right},
        {"value": right[:-1]},
        {"value": None},
        {"value": right, "headers": None},
    ]
    columns: dict[str, object] = {"partition": 0, "offset": 5, "micros": 1000 * MILLISECONDS, "key": b"ann"}
    headers: dict[str, object] = {"headers": [{"key": "beds", "value": b"3"}]}
    batch = pa.RecordBatch.from_pylist([columns | headers | row for row in rows])
    task = RawTask("tests.waveforms:app", "waveforms", waveforms.PACKED.topic, ())
    assert [batch_counts.to_pylist() for batch_counts in task(iter([batch, batch]))] == [[{"decoded": 2, "refused": 6}]]
    topics = waveforms.app.topics
    assert [topic for topic, *_ in producer.written] == [topics.events, *[topics.dead_letters] * 3] * 2


def test_each_application_that_reads_the_events_has_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    producer, app = FakeProducer(), waveforms.app
    other = Namespace(topics=Topics(prefix="other.", events=app.topics.events))
    strange = waveforms.prefixed("strange.")
    monkeypatch.setattr("spark_app.raw.decode._producer", lambda _: producer)
    monkeypatch.setattr("spark_app.raw.decode.load_suite", lambda _: Namespace(applications=(app, other, strange)))
    columns = {
        "partition": 0,
        "offset": 5,
        "micros": 1000 * MILLISECONDS,
        "key": b"ann",
        "headers": None,
        "value": b"x",
    }
    task = RawTask("several", app.name, waveforms.PACKED.topic, ())
    (counts,) = task(iter([pa.RecordBatch.from_pylist([columns])]))
    assert counts.to_pylist() == [{"decoded": 0, "refused": 1}], "it is one record"
    assert [topic for topic, *_ in producer.written] == [app.topics.dead_letters, other.topics.dead_letters]


def test_a_redriven_record_gives_the_event_of_its_origin_at_the_time_of_the_redrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = FakeProducer()
    monkeypatch.setattr("spark_app.raw.decode._producer", lambda _: producer)
    at = MILLISECONDS - 3_600_000
    origin = {PLACE: "raw/1/7", TIME: str(at), "beds": "3"}
    headers = [{"key": name, "value": value.encode()} for name, value in origin.items()]
    columns = {"partition": 0, "offset": 5, "micros": 1000 * MILLISECONDS, "key": b"ann", "headers": headers}
    right = struct.pack("<q8h", at, *range(8))
    batch = pa.RecordBatch.from_pylist([columns | {"value": value} for value in (right, right[:-1])])
    task = RawTask("tests.waveforms:app", "waveforms", waveforms.PACKED.topic, ())
    assert [batch_counts.to_pylist() for batch_counts in task(iter([batch]))] == [[{"decoded": 1, "refused": 1}]]
    (_, event, _, event_time), (_, dead_letter, _, _) = producer.written
    assert event is not None
    assert dead_letter is not None
    assert (orjson.loads(event)["event_id"], event_time) == ("raw/1/7", MILLISECONDS)
    letter = orjson.loads(dead_letter)
    assert (letter["partition"], letter["offset"]) == (0, 5)
    assert datetime.fromisoformat(letter["timestamp"]) == NOW - timedelta(hours=1)


def test_a_forged_time_of_a_redrive_stops_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = FakeProducer()
    monkeypatch.setattr("spark_app.raw.decode._producer", lambda _: producer)
    forged = {PLACE: b"raw/1/7", TIME: 19 * b"9", "beds": b"3"}
    headers = [{"key": name, "value": value} for name, value in forged.items()]
    columns = {"partition": 0, "offset": 5, "micros": 1000 * MILLISECONDS, "key": b"ann", "headers": headers}
    batch = pa.RecordBatch.from_pylist([columns | {"value": struct.pack("<q8h", MILLISECONDS, *range(8))}])
    task = RawTask("tests.waveforms:app", "waveforms", waveforms.PACKED.topic, ())
    assert [counts.to_pylist() for counts in task(iter([batch]))] == [[{"decoded": 1, "refused": 0}]]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_app.raw.query.find_spec", lambda name: None if name == "pyarrow" else name)
    with pytest.raises(MissingPackageError, match=r"needs the package pyarrow.*stateloop\[raw\]"):
        check_extra()
