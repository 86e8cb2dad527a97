"""An application that gets no more events: its windows expire all the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from contracts import Emit, Topics
from contracts.records.record import HEARTBEAT_KEY, Record, timestamp_ms
from contracts.wire import DeadLetter, decode_snapshot
from services.runtime.broker_clock import BrokerClock
from services.runtime.kafka.blocking import BlockingKafkaProducer
from spark_app.query.lift import events
from spark_app.query.pipeline import states
from spark_app.run.heartbeat import EVERY, PATIENCE, WITHIN, Heartbeat
from spark_app.run.low_watermark import LowWatermark, clock
from spark_app.settings import JobSettings
from tests import everything
from tests.clock import Clock
from tests.contracts.model.test_suite import of
from tests.everything import EPOCH, NOW, event_record
from tests.spark_app import running
from tests.spark_app.frames import ONE, SCHEMA, row, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from services.runtime.kafka.values import Output
    from tests.services.tools.broker.embedded import EmbeddedBroker

WINDOW = everything.KEPT_FOR + timedelta(minutes=1)
MINUTE = timedelta(minutes=1)


def reached(time: datetime | None) -> LowWatermark:
    """The low watermark of a query that has processed all that arrived before a time."""
    inputs: Any = SimpleNamespace(ends=lambda: {("events", 1): 1}, newest_ms=lambda: timestamp_ms(NOW))
    low = LowWatermark(inputs, clock, BrokerClock(lambda: 0.0))
    low.time = time
    return low


def millis(time: datetime) -> bytes:
    return b"%d" % (time.timestamp() * 1000)


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
    time = Clock()
    low = reached(now)
    producer = BlockingKafkaProducer(settings.client(), "heartbeat", WITHIN)
    heartbeat = Heartbeat(application, settings, low, producer, lambda: now, time)
    idle = WINDOW + timedelta(minutes=5)
    assert not heartbeat.after(batch(now - WINDOW))
    assert not heartbeat.after(batch(now - idle))
    assert heartbeat.after(batch(now - idle - timedelta(seconds=1)))
    assert not heartbeat.beat(), "one was written just now"
    time.now += EVERY.total_seconds()
    assert not heartbeat.beat(), "nothing has arrived since"
    time.now += EVERY.total_seconds()
    low.time = now + EVERY
    assert heartbeat.after(batch(None))
    sent = topics.read(application.topics.feedback, 2)
    assert heartbeat.prefix.startswith(HEARTBEAT_KEY)
    times = [millis(time) for time in (now, now + EVERY)]
    assert sorted((message.key(), message.value()) for message in sent) == [
        (heartbeat.prefix + time, None) for time in times
    ]
    monkeypatch.setenv("EVERYTHING_REPLAY", "1")
    assert not Heartbeat(everything.application(), settings, low, producer, lambda: now).after(batch(None))


def test_a_broker_that_is_away_costs_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    settings = JobSettings(application="", kafka="127.0.0.1:1")
    producer = BlockingKafkaProducer(settings.client(), "heartbeat", timedelta(seconds=0.1))
    assert not Heartbeat(everything.application(), settings, reached(NOW), producer).after(batch(None))


class Sent:
    """A producer that keeps the topics of the heartbeats."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.producer: Any = SimpleNamespace(send=self._send)

    def _send(self, outputs: Sequence[Output]) -> None:
        self.topics.extend(
            output.topic if output.partition < 0 else f"{output.topic}/{output.partition}" for output in outputs
        )


def test_a_closed_window_waits_for_no_long_delay_of_the_watermark() -> None:
    sent = Sent()
    settings, now = JobSettings(application="", kafka="127.0.0.1:1", batch=timedelta(minutes=5)), datetime.now(UTC)
    for emit, is_written in ((Emit.BATCH, False), (Emit.CLOSE, True)):
        heartbeat = Heartbeat(of("trips", Topics(), emit=emit), settings, reached(now), sent.producer, lambda: now)
        assert heartbeat.after(batch(now - WINDOW - 2 * EVERY)) is is_written
    assert sent.topics == ["events"]


@pytest.mark.parametrize(("emit", "is_written"), [(Emit.EVENT, False), (Emit.BATCH, True), (Emit.CLOSE, True)])
def test_a_query_that_has_read_nothing_yet_gets_a_heartbeat_if_it_waits_for_records(
    emit: Emit, *, is_written: bool
) -> None:
    sent, settings = Sent(), JobSettings(application="", kafka="127.0.0.1:1")
    heartbeat = Heartbeat(of("trips", Topics(), emit=emit), settings, reached(NOW), sent.producer)
    assert heartbeat.beat() is is_written
    assert sent.topics == ["events"] * is_written


def test_a_partition_that_stays_behind_gets_a_record_for_the_marker_at_its_end() -> None:
    sent = Sent()
    settings, now, time = JobSettings(application="", kafka="127.0.0.1:1"), datetime.now(UTC), Clock()
    low = reached(None)
    low.advance()
    heartbeat = Heartbeat(of("trips", Topics()), settings, low, sent.producer, lambda: now, time)
    assert not heartbeat.after(batch(None))
    time.now += PATIENCE * settings.batch.total_seconds()
    assert heartbeat.after(batch(None))
    assert sent.topics == ["events/1"]


def test_a_clock_that_is_set_back_delays_no_heartbeat() -> None:
    sent = Sent()
    settings, ahead, time = JobSettings(application="", kafka="127.0.0.1:1"), Clock(3600.0), Clock()
    low = reached(NOW)
    heartbeat = Heartbeat(
        of("trips", Topics()), settings, low, sent.producer, lambda: NOW + WINDOW + timedelta(seconds=ahead.now), time
    )
    assert heartbeat.after(batch(None))
    ahead.now, low.time = 0.0, NOW + EVERY
    assert not heartbeat.after(batch(None)), "one was written just now"
    time.now += EVERY.total_seconds()
    assert heartbeat.after(batch(None))
    assert sent.topics == ["events"] * 2


@pytest.mark.spark
def test_a_heartbeat_is_neither_a_snapshot_nor_a_dead_letter(spark: SparkSession) -> None:
    """Another record without value, or one with this key and a value, is a dead letter."""
    now = timestamp_ms(NOW)
    others = [Record("feedback", 0, 1, now, b"d1", None), Record("feedback", 0, 2, now, HEARTBEAT_KEY, b"x")]
    beats = [Record("feedback", 0, 0, now, HEARTBEAT_KEY, None), Record("feedback", 0, 3, now, None, None)]
    event = {"device_id": "d1", "event_id": "1", "first_seen": NOW, "ts": NOW}
    published = run(spark, everything.little, [event_record(event)], [*beats, *others])
    letters = [DeadLetter.model_validate_json(value) for topic, _, value in published if topic == "dead_letters"]
    assert sorted(letter.offset for letter in letters) == [1, 2, 3]
    (snapshot,) = (decode_snapshot(value) for topic, _, value in published if topic == "snapshots")
    assert snapshot.device_id == "d1"


@pytest.mark.spark
@pytest.mark.parametrize("deduplicate", [True, False])
def test_only_a_heartbeat_of_this_run_moves_the_watermark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, deduplicate: bool
) -> None:
    """The filter of heartbeats must stay above the watermark, however Spark arranges the plan."""
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    application = everything.application(everything.Little, deduplicate=deduplicate)
    later = NOW + 2 * WINDOW
    event = event_record({"device_id": "d1", "event_id": "1", "first_seen": later, "ts": later})
    event = event._replace(timestamp_ms=timestamp_ms(later))
    own, other = HEARTBEAT_KEY + b" this ", HEARTBEAT_KEY + b" that "
    beats = (own + millis(NOW), other + millis(later), own, HEARTBEAT_KEY)
    for number, record in enumerate((event, *(Record("events", 0, 1, event.timestamp_ms, key, None) for key in beats))):
        table = spark.createDataFrame([row(record)], SCHEMA).coalesce(1)
        table.write.mode("append").parquet(str(tmp_path / "records" / str(number)))
    records = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/records/*")
    rows = states(events(records, application, EPOCH, ONE, own), application, EPOCH)
    sink = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = sink.outputMode("update").trigger(availableNow=True).start()
    query.awaitTermination()
    watermarks = [progress.eventTime["watermark"] for progress in query.recentProgress]
    expected = NOW - everything.KEPT_FOR - application.skew
    assert datetime.fromisoformat(watermarks[-1]) == expected
