"""An application that gets no more events: its windows expire all the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from contracts import Emit, Topics
from contracts.records.record import HEARTBEAT_KEY, Record
from contracts.wire import DeadLetter, decode_snapshot
from spark_app.heartbeat import EVERY, Heartbeat
from spark_app.lift import events
from spark_app.pipeline import states
from spark_app.settings import JobSettings
from tests import everything
from tests.clock import Clock
from tests.contracts.model.test_suite import of
from tests.everything import EPOCH, NOW, event_record
from tests.spark_app import running
from tests.spark_app.frames import ONE, SCHEMA, row, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.broker.embedded import EmbeddedBroker

WINDOW = everything.KEPT_FOR + timedelta(minutes=1)


def batch(watermark: datetime | None) -> Any:
    return SimpleNamespace(eventTime={} if watermark is None else {"watermark": watermark.isoformat()})


@pytest.mark.kafka
def test_only_an_idle_application_gets_a_heartbeat(
    broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    application = everything.application()
    topics = running.Topics(broker.bootstrap, application)
    settings = JobSettings(application="", kafka=broker.bootstrap, batch=timedelta(minutes=5))
    now = datetime.now(UTC)
    clock = Clock()
    heartbeat = Heartbeat(application, settings, lambda: now + timedelta(seconds=clock.now))
    idle = WINDOW + timedelta(minutes=10)
    assert not heartbeat.after(batch(now - WINDOW))
    assert not heartbeat.after(batch(now - idle))
    assert heartbeat.after(batch(now - idle - timedelta(seconds=1)))
    assert not heartbeat.beat(), "one was written just now"
    clock.now += EVERY.total_seconds()
    assert heartbeat.after(batch(None))
    sent = topics.read(application.topics.feedback, 2)
    assert [(message.key(), message.value()) for message in sent] == [(HEARTBEAT_KEY, None)] * 2
    monkeypatch.setenv("EVERYTHING_REPLAY", "1")
    assert not Heartbeat(everything.application(), settings, lambda: now).after(batch(None))


def test_a_broker_that_is_away_costs_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    monkeypatch.setattr("spark_app.heartbeat.FLUSH_S", 0.1)
    settings = JobSettings(application="", kafka="127.0.0.1:1")
    assert not Heartbeat(everything.application(), settings).after(batch(None))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the topics of the heartbeats, which no broker receives."""
    topics: list[str] = []

    def produce(topic: str, *, key: bytes, on_delivery: Callable[[None, object], object]) -> None:
        topics.append(topic)
        on_delivery(None, key)

    producer = SimpleNamespace(produce=produce, flush=lambda _: 0)
    monkeypatch.setattr("spark_app.heartbeat.create_producer", lambda *_, **__: producer)
    return topics


def test_a_closed_window_waits_for_no_long_delay_of_the_watermark(sent: list[str]) -> None:
    settings, now = JobSettings(application="", kafka="127.0.0.1:1", batch=timedelta(minutes=5)), datetime.now(UTC)
    for emit, is_written in ((Emit.BATCH, False), (Emit.CLOSE, True)):
        heartbeat = Heartbeat(of("trips", Topics(), emit=emit), settings, lambda: now)
        assert heartbeat.after(batch(now - WINDOW - 2 * EVERY)) is is_written
    assert sent == ["events"]


@pytest.mark.parametrize(("emit", "is_written"), [(Emit.EVENT, False), (Emit.BATCH, True), (Emit.CLOSE, True)])
def test_a_query_that_has_read_nothing_yet_gets_a_heartbeat_if_it_waits_for_records(
    sent: list[str], emit: Emit, *, is_written: bool
) -> None:
    heartbeat = Heartbeat(of("trips", Topics(), emit=emit), JobSettings(application="", kafka="127.0.0.1:1"))
    assert heartbeat.beat() is is_written
    assert sent == ["events"] * is_written


@pytest.mark.spark
def test_a_heartbeat_is_neither_a_snapshot_nor_a_dead_letter(spark: SparkSession) -> None:
    """Another record without value, or one with this key and a value, is a dead letter."""
    others = [Record("feedback", 0, 1, NOW, b"d1", None), Record("feedback", 0, 2, NOW, HEARTBEAT_KEY, b"x")]
    beats = [Record("feedback", 0, 0, NOW, HEARTBEAT_KEY, None), Record("feedback", 0, 3, NOW, None, None)]
    event = {"device_id": "d1", "event_id": "1", "first_seen": NOW, "ts": NOW}
    published = run(spark, everything.little, [event_record(event)], [*beats, *others])
    letters = [DeadLetter.model_validate_json(value) for topic, _, value in published if topic == "dead_letters"]
    assert sorted(letter.offset for letter in letters) == [1, 2, 3]
    (snapshot,) = (decode_snapshot(value) for topic, _, value in published if topic == "snapshots")
    assert snapshot.device_id == "d1"


@pytest.mark.spark
@pytest.mark.parametrize("deduplicate", [True, False])
def test_a_heartbeat_moves_the_watermark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, deduplicate: bool
) -> None:
    """The filter of heartbeats must stay above the watermark, however Spark arranges the plan."""
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    application = everything.application(everything.Little, deduplicate=deduplicate)
    event = event_record({"device_id": "d1", "event_id": "1", "first_seen": NOW, "ts": NOW})
    later = NOW + 2 * WINDOW
    for number, record in enumerate((event, Record("events", 0, 1, later, HEARTBEAT_KEY, None))):
        table = spark.createDataFrame([row(record)], SCHEMA).coalesce(1)
        table.write.mode("append").parquet(str(tmp_path / "records" / str(number)))
    records = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/records/*")
    rows = states(events(records, application, EPOCH, ONE), application, EPOCH)
    sink = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = sink.outputMode("update").trigger(availableNow=True).start()
    query.awaitTermination()
    watermarks = [progress.eventTime["watermark"] for progress in query.recentProgress]
    expected = later - everything.KEPT_FOR - application.skew
    assert datetime.fromisoformat(watermarks[-1]) == expected
