"""Hostile records through the job's decoding and through the plain one: the same verdicts, and the same values."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contracts import Application
from contracts.records.decode import Decoder
from contracts.records.record import Record, RecordError, timestamp_ms
from contracts.records.shape import feedback_shape, read
from contracts.types.columns import without_none
from contracts.types.key import LARGEST_KEY, shortened, shortened_sql
from contracts.wire import DeadLetter, decode_snapshot
from spark_app.query.columns import field_column
from spark_app.query.decode import decoded
from tests import bounded, hostile, keyed
from tests.everything import NOW, Thing, application
from tests.spark_app.frames import SCHEMA, run

pytestmark = pytest.mark.spark
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_the_same_result_on_both_sides(spark: SparkSession) -> None:
    """Without deduplication and with the offset as the broker's microsecond, each record shows in what comes out."""
    app = application(deduplicate=False)
    now = timestamp_ms(NOW)
    records = [Record("events", 0, offset, now, key, value) for offset, (key, value) in enumerate(hostile.keyed())]
    assert len(records) >= 500
    expected: dict[int, tuple[str, str | None]] = {}
    accepted = 0
    for record in records:
        try:
            Decoder(app).event(record)
            accepted += 1
        except RecordError as refused:
            expected[record.offset] = refused.reason.value, refused.detail
    published = run(spark, app, records)
    letters = [DeadLetter.model_validate_json(value) for topic, _, value in published if topic == "dead_letters"]
    actual = {letter.offset: (letter.reason, letter.detail) for letter in letters}
    differing = {
        offset: (records[offset].value, expected.get(offset), actual.get(offset))
        for offset in expected.keys() ^ actual.keys()
        | {o for o in expected.keys() & actual.keys() if expected[o] != actual[o]}
    }
    assert not differing, "\n".join(f"{str(v)[:200]} python={e} spark={f}" for v, e, f in differing.values())
    merged = [decode_snapshot(value) for topic, _, value in published if topic == "snapshots"]
    assert sum(snapshot.version for snapshot in merged) == accepted


@pytest.mark.parametrize(
    ("values", "shape", "app", "least"),
    [
        (hostile.records(), Thing, application(), 250),
        (bounded.events(), bounded.Bounded, bounded.app, 60),
        (bounded.answers(), feedback_shape(bounded.app), bounded.app, 20),
        (keyed.events(), keyed.app.event_shape, keyed.app, 3),
    ],
    ids=["hostile", "bounded", "answers", "keyed"],
)
def test_the_same_values_on_both_sides(
    spark: SparkSession, values: Iterable[bytes | None], shape: type[BaseModel], app: Application, least: int
) -> None:
    """Floats and times exactly. A JSON document in place of a text is the same text up to the spaces in it."""
    records = list(values)
    results = judged(spark, records, shape, app)
    expected = [outcome(shape, value, app) for value in records]
    differing = [
        f"{str(value)[:200]}\n  python={e}\n   spark={f}"
        for value, e, f in zip(records, expected, results, strict=True)
        if repr(e) != repr(f)
    ]
    assert not differing, f"{len(differing)} differ\n" + "\n".join(differing)
    assert sum(isinstance(result, dict) for result in expected) >= least


def judged(spark: SparkSession, values: list[bytes | None], shape: type[BaseModel], app: Application) -> list[Any]:
    """Return the result of each value in the job: its fields, times as microseconds, or its reason and detail."""
    rows = [(b"k", value, "events", 0, offset, NOW) for offset, value in enumerate(values)]
    frame = decoded(spark.createDataFrame(rows, SCHEMA), shape, app)
    collected = fields(frame, shape).orderBy("offset").collect()
    return [row.asDict(recursive=True)["f"] if row.reason is None else tuple(row.reason) for row in collected]


def fields(frame: DataFrame, shape: type[BaseModel]) -> DataFrame:
    """The fields of a shape as one struct."""
    columns = [
        (F.unix_micros(field_column(name)) if _is_time(field.annotation) else F.col(field_column(name))).alias(name)
        for name, field in shape.model_fields.items()
    ]
    return frame.select("offset", "reason", F.struct(*columns).alias("f"))


def outcome(shape: type[BaseModel], value: bytes | None, app: Application) -> Any:
    """The same, in plain Python."""
    try:
        values = read(shape, value, app.largest_record)
    except RecordError as refused:
        return refused.reason.value, refused.detail
    return {
        name: (item - EPOCH) // timedelta(microseconds=1) if isinstance(item, datetime) else item
        for name, item in values.items()
    }


def _is_time(annotation: Any) -> bool:
    return without_none(annotation)[0] is datetime


def test_a_dead_letter_has_the_position_of_its_record(spark: SparkSession) -> None:
    record = Record("events", 3, 77, timestamp_ms(NOW), b"\xffkey", b"<html>" + b"x" * 5_000)
    ((topic, key, value),) = run(spark, application(), [record])
    letter = DeadLetter.model_validate_json(value)
    assert (topic, letter.reason) == ("dead_letters", "malformed")
    assert (letter.topic, letter.partition, letter.offset, letter.timestamp) == ("events", 3, 77, NOW)
    assert letter.head == "<html>" + "x" * 994
    assert key == b"\xffkey"


@given(keys=st.lists(st.binary(max_size=9) | st.text(max_size=9).map(str.encode), min_size=9, max_size=9))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_key_is_cut_as_plain_python_cuts_it(spark: SparkSession, keys: list[bytes]) -> None:
    grown = [*keys, *(key * (LARGEST_KEY // max(len(key), 1) + 1) for key in keys)]
    rows = spark.createDataFrame([(key,) for key in grown], "key BINARY")
    cut = rows.select(F.expr(shortened_sql("key")).cast("binary").alias("cut")).collect()
    assert [bytes(row.cut) for row in cut] == [shortened(key) for key in grown]
