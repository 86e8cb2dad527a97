"""Hostile records through the job's decoding and through the plain one: the same verdicts."""

import pytest
from pyspark.sql import SparkSession

from contracts.decode import Decoder
from contracts.record import Record, Refused
from contracts.wire import DeadLetter, decode_snapshot
from tests import hostile
from tests.everything import NOW, application
from tests.spark_app.frames import run

pytestmark = pytest.mark.spark


def test_the_same_verdict_on_both_sides(spark: SparkSession) -> None:
    """Without deduplication and with the offset as the broker's microsecond, each record shows in what comes out."""
    app = application(deduplicate=False)
    records = [
        Record("events", 0, offset, NOW, f"k{offset}".encode(), value) for offset, value in enumerate(hostile.records())
    ]
    assert len(records) >= 500
    expected: dict[int, str] = {}
    accepted = 0
    for record in records:
        try:
            Decoder(app).event(record)
            accepted += 1
        except Refused as refused:
            expected[record.offset] = refused.reason.value
    published = run(spark, app, records)
    letters = [DeadLetter.model_validate_json(value) for topic, _, value in published if topic == "dead_letters"]
    found = {letter.offset: letter.reason for letter in letters}
    differing = {
        offset: (records[offset].value, expected.get(offset), found.get(offset))
        for offset in expected.keys() ^ found.keys()
        | {o for o in expected.keys() & found.keys() if expected[o] != found[o]}
    }
    assert not differing, "\n".join(f"{str(v)[:200]} python={e} spark={f}" for v, e, f in differing.values())
    merged = [decode_snapshot(value) for topic, _, value in published if topic == "snapshots"]
    assert sum(snapshot.version for snapshot in merged) == accepted


def test_a_letter_says_where_it_came_from(spark: SparkSession) -> None:
    record = Record("events", 3, 77, NOW, b"\xffkey", b"<html>" + b"x" * 5_000)
    ((topic, key, value),) = run(spark, application(), [record])
    letter = DeadLetter.model_validate_json(value)
    assert (topic, letter.reason) == ("dead_letters", "malformed")
    assert (letter.topic, letter.partition, letter.offset, letter.timestamp) == ("events", 3, 77, NOW)
    assert letter.head == "<html>" + "x" * 994
    assert key is not None
