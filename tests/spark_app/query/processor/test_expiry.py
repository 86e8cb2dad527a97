"""A window of a processor expires: a streaming query removes all that is stored of it when the watermark has passed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts import Emit, Processor
from contracts.records.record import HEARTBEAT_KEY, Record, timestamp_ms
from spark_app.query.pipeline import deltas, states
from tests.clicks import HOUR, NOW, application, click_record
from tests.processed import Tallies, Tally
from tests.spark_app.frames import SCHEMA, row
from tests.spark_app.running import until

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.slow]
VARIABLES = ("stateloop", "sums", "timed", "countries")


class Short(Tallies, key="page", window=HOUR, grace=timedelta(seconds=1)):
    """Its grace is also how often the adapter looks whether a window has expired."""


def test_an_expired_window_leaves_nothing_in_the_state(spark: SparkSession, tmp_path: Path) -> None:
    app = application(Short, emit=Emit.BATCH, deduplicate=False, processor=Processor(Tally))
    records, checkpoint = tmp_path / "records", tmp_path / "checkpoint"
    send(spark, records, NOW)
    source = spark.readStream.schema(SCHEMA).parquet(str(records))
    rows = states(deltas(source, None, app, 1, 1, HEARTBEAT_KEY), app, 1)
    sink = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).outputMode("update")
    query = sink.trigger(processingTime="1 second").start()
    try:
        until(lambda: clicks(query) == 1, "the first click")
        assert hours(spark, checkpoint) == [0]
        send(spark, records, NOW + 3 * HOUR)
        until(lambda: clicks(query) == 2, "the second click")
        until(lambda: hours(spark, checkpoint) == [3], "the second window alone", pause_s=1)
        # The two variables of one value and the list have a row each, and so has the one country.
        assert {name: read(spark, checkpoint, name) for name in VARIABLES[1:]} == dict.fromkeys(VARIABLES[1:], 1)
    finally:
        query.stop()


def send(spark: SparkSession, records: Path, ts: datetime) -> None:
    """Add a file with one click of this time, and a heartbeat."""
    click = {"event_id": ts.isoformat(), "click": "1", "page": "p", "country": "de", "ts": ts.isoformat(), "ms": 1}
    beat = Record("events", 0, 1, timestamp_ms(ts), HEARTBEAT_KEY + b"%d" % timestamp_ms(ts), None)
    table = spark.createDataFrame([row(click_record(click, stamp=ts)), row(beat)], SCHEMA)
    table.coalesce(1).write.mode("append").parquet(str(records))


def clicks(query: StreamingQuery) -> float:
    """The number of clicks in committed batches, each with a heartbeat.

    The store is read after them: reading it takes a second of CPU.
    """
    return sum(progress.numInputRows for progress in query.recentProgress) / 2


def hours(spark: SparkSession, checkpoint: Path) -> list[int]:
    """The starts of the stored windows, in hours after the first one."""
    rows = spark.read.format("statestore").option("stateVarName", VARIABLES[0]).load(str(checkpoint)).collect()
    starts = [json.loads(row.value.content)["first_seen"] for row in rows]
    return sorted((start - round(NOW.timestamp() * 1e6)) // round(HOUR.total_seconds() * 1e6) for start in starts)


def read(spark: SparkSession, checkpoint: Path, name: str) -> int:
    """The number of rows that a variable has."""
    return spark.read.format("statestore").option("stateVarName", name).load(str(checkpoint)).count()
