"""The keys and partitions of snapshots, as the job's expressions make them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

from contracts.records.record import Record
from contracts.wire.window_key import window_key, window_key_sql
from spark_app.pipeline import snapshots
from tests.everything import EPOCH, NOW, answer_record, app, event_record
from tests.spark_app.frames import PARTITIONS, SCHEMA, row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

OLDER, NEWER = NOW - timedelta(minutes=30), NOW - timedelta(minutes=5)
NAMES = ("d", "ä/1", "日本@", "𝄞", "\x1f", "a'b\\", "x" * 256, "d@2026-05-01T08:00:00.000000Z")


def test_spark_makes_the_same_key_as_python(spark: SparkSession) -> None:
    rnd = random.Random(1)
    first, last = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
    spans = [timedelta(microseconds=rnd.randrange((last - first) // timedelta(microseconds=1))) for _ in range(500)]
    windows = [(rnd.choice(NAMES), first + span) for span in spans]
    micros = [
        (name, (start - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)) for name, start in windows
    ]
    frame = spark.createDataFrame(micros, "device STRING, micros BIGINT").withColumn(
        "start", F.expr("timestamp_micros(micros)")
    )
    found = [row.key for row in frame.select(F.expr(window_key_sql("device", "start")).alias("key")).collect()]
    assert found == [window_key(name, start).decode() for name, start in windows]


def test_each_window_has_a_key_of_its_own_in_the_partition_of_the_device(spark: SparkSession) -> None:
    events = [_event("d", OLDER, 3), _event("d", NEWER, 3), _event("e", NEWER, 1)]
    rows = _published(spark, events, [])
    assert {(row.key, row.partition) for row in rows} == {
        (window_key("d", OLDER).decode(), 3),
        (window_key("d", NEWER).decode(), 3),
        (window_key("e", NEWER).decode(), 1),
    }


def test_a_snapshot_follows_the_events_and_not_the_answers(spark: SparkSession) -> None:
    answers = [_answer("d", NEWER, 7), _answer("e", NEWER, 7)]
    rows = _published(spark, [_event("d", NEWER, 3)], answers)
    assert {(row.key, row.partition) for row in rows} == {
        (window_key("d", NEWER).decode(), 3),
        (window_key("e", NEWER).decode(), 7),
    }


def test_a_dead_letter_keeps_its_key_and_has_the_partition_of_it(spark: SparkSession) -> None:
    (row,) = _published(spark, [Record("events", 5, 0, NOW, b"d", b"no JSON")], [])
    assert (row.topic, row.key, row.partition) == (app.topics.dead_letters, "d", None)


def _event(device: str, first_seen: datetime, partition: int) -> Record:
    event = {"device_id": device, "event_id": "1", "first_seen": first_seen, "ts": first_seen}
    return replace(event_record(event), partition=partition)


def _answer(device: str, first_seen: datetime, partition: int) -> Record:
    answer = {"device_id": device, "first_seen": first_seen, "version": 1, "ts": NOW, "fingerprint": "f"}
    return replace(answer_record(answer | {"answer": ("owner", "absence", None)}), partition=partition)


def _published(spark: SparkSession, events: Iterable[Record], answers: Iterable[Record]) -> list[Row]:
    tables = [spark.createDataFrame([row(record) for record in records], SCHEMA) for records in (events, answers)]
    return snapshots(tables[0], tables[1], app, EPOCH, PARTITIONS).collect()
