"""The keys and partitions of snapshots, as the job's expressions make them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Record, timestamp_ms
from contracts.wire import decode_snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key, window_key_sql
from spark_app.query.pipeline import snapshots
from tests.everything import EPOCH, NOW, answer_record, app, event_record
from tests.spark_app.frames import PARTITIONS, SCHEMA, row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

OLDER, NEWER = NOW - timedelta(minutes=30), NOW - timedelta(minutes=5)
D = partition(b"d", PARTITIONS)
assert D
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
    keys = [row.key for row in frame.select(F.expr(window_key_sql("device", "start")).alias("key")).collect()]
    assert keys == [window_key(name, start).decode() for name, start in windows]


def test_each_window_has_a_key_of_its_own_in_the_partition_of_the_device(spark: SparkSession) -> None:
    """Wherever its records are: a producer may have known fewer partitions."""
    events = [_event("d", OLDER, 0), _event("d", NEWER, 0), _event("d", NEWER, D, number=2), _event("e", NEWER, D)]
    rows = _published(spark, events, [_answer("e", NEWER, 0), _answer("f", NEWER, 0)])
    places = {"d": D, "e": partition(b"e", PARTITIONS), "f": partition(b"f", PARTITIONS)}
    assert len(set(places.values())) > 1
    assert {(row.key, row.partition) for row in rows} == {
        (window_key(device, start).decode(), places[device])
        for device, start in (("d", OLDER), ("d", NEWER), ("e", NEWER), ("f", NEWER))
    }


def test_the_offset_of_an_event_counts_in_the_partition_of_its_device(spark: SparkSession) -> None:
    """Offsets of two partitions are not comparable. The fold finds the same."""
    events = [_event("d", OLDER, 0, offset=9), _event("d", NEWER, 0, offset=9), _event("d", NEWER, D, number=2)]
    decoder, fold = Decoder(app, EPOCH, partitions=PARTITIONS), Fold(app, epoch=EPOCH)
    for event in events:
        for delta in decoder.event(event):
            fold.add(delta)
    offsets = {
        snapshot.window: snapshot.event_offset
        for snapshot in map(decode_snapshot, _values(_published(spark, events, [])))
    }
    assert offsets == {window: partial.event_offset for window, partial in fold.windows.items()}
    assert offsets == {("d", OLDER): None, ("d", NEWER): 0}


def test_a_dead_letter_keeps_its_key_and_has_the_partition_of_it(spark: SparkSession) -> None:
    (row,) = _published(spark, [Record("events", 5, 0, timestamp_ms(NOW), b"d", b"no JSON")], [])
    assert (row.topic, row.key, row.partition) == (app.topics.dead_letters, "d", None)


def _event(device: str, first_seen: datetime, partition: int, *, offset: int = 0, number: int = 1) -> Record:
    event = {"device_id": device, "event_id": str(number), "first_seen": first_seen, "ts": first_seen}
    return event_record(event)._replace(partition=partition, offset=offset)


def _answer(device: str, first_seen: datetime, partition: int) -> Record:
    answer = {"device_id": device, "first_seen": first_seen, "version": 1, "ts": NOW, "fingerprint": "f"}
    return answer_record(answer | {"answer": ("owner", "absence", None)})._replace(partition=partition)


def _published(spark: SparkSession, events: Iterable[Record], answers: Iterable[Record]) -> list[Row]:
    tables = [spark.createDataFrame([row(record) for record in records], SCHEMA) for records in (events, answers)]
    return snapshots(tables[0], tables[1], app, EPOCH, PARTITIONS).collect()


def _values(rows: Iterable[Row]) -> list[bytes]:
    return [row.value.encode() for row in rows]
