"""Windowed states in the job against the plain Python fold, and the SQL that both share."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.windows import last_window_start_sql, window_starts, window_starts_sql
from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import RecordError
from contracts.types.key import composite_key, composite_key_sql
from contracts.wire import DeadLetter, decode_snapshot
from contracts.wire.partition import partition, partition_sql
from contracts.wire.window_key import window_key
from spark_app.checkpoint.unpublished_windows import StartRange, UnpublishedWindows
from spark_app.query.columns import DEAD_LETTER, FIRST_SEEN
from spark_app.query.pipeline import published_sql, snapshots
from tests import filtered
from tests.clicks import Pairs, application, hops, owned, random_answers, random_clicks
from tests.everything import EPOCH
from tests.same import assert_same
from tests.spark_app.frames import PARTITIONS, SCHEMA, row, run
from tests.windowed import spans, windowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from contracts import Application
    from contracts.records.record import Record

pytestmark = pytest.mark.spark
START = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_sparks_unpublished_windows_equal_those_of_the_checkpoint(spark: SparkSession) -> None:
    """They begin until 2 ms, and in two ranges. A dead letter is published always."""
    windows = UnpublishedWindows(missing=2, closed=(StartRange(4, 6), StartRange(8, 9)))
    starts = [START + number * timedelta(microseconds=500) for number in range(-1, 22)]
    rows = [*((start, 1, None) for start in starts), (START, 1, "a dead letter")]
    frame = spark.createDataFrame(rows, f"{FIRST_SEEN} timestamp, version int, {DEAD_LETTER} string")
    published = frame.where(published_sql(windows.ranges)).select(F.unix_micros(FIRST_SEEN), DEAD_LETTER).collect()
    expected = [((start - START) // MICROSECOND, None) for start in starts if not windows.has(start)]
    assert sorted(map(tuple, published), key=str) == sorted([*expected, (0, "a dead letter")], key=str)


@pytest.mark.parametrize(
    "app",
    [application(), application(Pairs), hops, application(Pairs, deduplicate=False), owned, filtered.hops],
    ids=["tumbling", "composite", "hopping", "copies", "enriched", "filtered"],
)
def test_sparks_windows_equal_the_folds(spark: SparkSession, app: Application) -> None:
    events = random_clicks(0, 2_400)
    answers = random_answers(0, 600) if app is owned else []
    fold, refused = _folded(app, events, answers)
    published = run(spark, app, events, answers)
    snapshots = {
        snapshot.window: snapshot
        for topic, _, value in published
        if topic == "snapshots"
        for snapshot in [decode_snapshot(value)]
    }
    letters = [DeadLetter.model_validate_json(value) for topic, _, value in published if topic == "dead_letters"]
    assert {(letter.topic, letter.offset): (letter.reason, letter.detail) for letter in letters} == refused
    assert {"late", "incredible_time"} <= {reason for reason, _ in refused.values()}
    assert snapshots.keys() == fold.windows.keys()
    for window, partial in fold.windows.items():
        expected = present(app, window, partial, EPOCH)
        assert_same(snapshots[window].model_dump(mode="json"), expected.model_dump(mode="json"))


def test_a_snapshot_is_in_the_partition_of_its_key(spark: SparkSession) -> None:
    table = spark.createDataFrame([row(record) for record in random_clicks(4, 300)], SCHEMA)
    rows = snapshots(table, None, hops, EPOCH, PARTITIONS).where("topic = 'snapshots'").collect()
    assert len({row.partition for row in rows}) > PARTITIONS // 2
    for published in rows:
        snapshot = decode_snapshot(published.value)
        assert published.key == window_key(*snapshot.window).decode()
        assert published.partition == partition(snapshot.device_id.encode(), PARTITIONS)
        assert snapshot.event_offset is None


@few
@given(spans(), st.lists(st.integers(-(10**16), 10**16), min_size=1, max_size=50))
def test_spark_finds_the_same_windows(
    spark: SparkSession, span: tuple[timedelta, timedelta, timedelta], micros: list[int]
) -> None:
    state = windowed(*span)
    frame = spark.createDataFrame([(microseconds,) for microseconds in micros], "m BIGINT").select(
        "m", F.expr("timestamp_micros(m)").alias("ts")
    )
    starts = F.expr(f"transform({window_starts_sql(state, 'ts')}, start -> unix_micros(start))").alias("starts")
    rows = frame.select("m", starts, F.expr(last_window_start_sql(state, "ts")).alias("last")).collect()
    for times in rows:
        expected = [(start - START) // MICROSECOND for start in window_starts(state, START + times.m * MICROSECOND)]
        assert (times.starts, times.last) == (expected, expected[-1])


def test_spark_makes_the_same_composite_keys(spark: SparkSession) -> None:
    rnd = random.Random(1)
    parts = [["".join(rnd.choices("ab:\\ä'日", k=rnd.randrange(5))) for _ in range(3)] for _ in range(500)]
    frame = spark.createDataFrame(parts, "a STRING, b STRING, c STRING")
    for columns in (("a",), ("a", "b"), ("a", "b", "c")):
        keys = [row.key for row in frame.select(F.expr(composite_key_sql(*columns)).alias("key")).collect()]
        assert keys == [composite_key(*key_parts[: len(columns)]) for key_parts in parts]


def test_spark_finds_the_same_partitions(spark: SparkSession) -> None:
    rnd = random.Random(1)
    keys = ["x" * size for size in range(33)] + [chr(255) * 249, "日" * 166]
    keys += [
        "".join(
            chr(rnd.choice((rnd.randrange(32, 127), rnd.randrange(0x10000, 0x10FFFF))))
            for _ in range(rnd.randrange(1, 30))
        )
        for _ in range(500)
    ]
    frame = spark.createDataFrame([(key,) for key in keys], "k STRING")
    for partitions in (1, 7, 64):
        numbers = [row.p for row in frame.select(F.expr(partition_sql("k", partitions)).alias("p")).collect()]
        assert numbers == [partition(key.encode(), partitions) for key in keys]


def _folded(
    app: Application, events: Iterable[Record], answers: Iterable[Record]
) -> tuple[Fold, dict[tuple[str, int], tuple[str, str | None]]]:
    """The fold of records, and reason and detail of those that are refused."""
    decoder, fold = Decoder(app, EPOCH), Fold(app, EPOCH)
    refused: dict[tuple[str, int], tuple[str, str | None]] = {}
    for record in (*events, *answers):
        try:
            deltas = decoder.event(record) if record.topic == "events" else (decoder.feedback(record),)
        except RecordError as error:
            refused[record.topic, record.offset] = error.reason.value, error.detail
        else:
            for delta in deltas:
                fold.add(delta)
    return fold, refused
