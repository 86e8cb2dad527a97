"""The alerts of the processor over a year of weather, against those that pandas finds."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contracts.records.record import Record, timestamp_ms
from contracts.wire import decode_snapshot
from examples.weather.processor import RECENT, StationRecord, app
from examples.weather.readings import readings
from tests.lazy import lazy
from tests.spark_app.frames import run

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession
else:
    pd = lazy("pandas")

pytestmark = pytest.mark.spark
CHANGES = 200


def test_the_alerts_of_a_year_are_those_of_pandas(spark: SparkSession) -> None:
    records = with_thresholds(7)
    events = [
        Record("events", 0, offset, timestamp_ms(record.ts), record.station.encode(), record.model_dump_json().encode())
        for offset, record in enumerate(records)
    ]
    snapshots = [decode_snapshot(value) for topic, _, value in run(spark, app, events) if topic == app.topics.snapshots]
    expected = by_pandas(records)
    assert {snapshot.device_id for snapshot in snapshots} == expected.keys()
    for snapshot in snapshots:
        alerts = expected[snapshot.device_id]
        assert len(alerts) > RECENT
        assert snapshot.state["alerts"] == len(alerts)
        recent = [reading | {"ts": pd.Timestamp(reading["ts"])} for reading in snapshot.state["recent"]]
        assert recent == alerts[-RECENT:]


def with_thresholds(seed: int) -> list[StationRecord]:
    """The readings, and new thresholds at random times between them."""
    rnd = random.Random(seed)
    year = [StationRecord.model_validate(reading.model_dump()) for reading in readings()]
    changed = [
        record.model_copy(
            update={
                "event_id": f"threshold/{number}",
                "ts": record.ts + timedelta(minutes=30),
                "threshold": rnd.uniform(3, 12),
                "temperature": None,
            }
        )
        for number, record in enumerate(rnd.sample(year, CHANGES))
    ]
    return sorted(year + changed, key=lambda record: record.ts)


def by_pandas(records: list[StationRecord]) -> dict[str, list[dict[str, Any]]]:
    """The alerts of each station in the order of time."""
    table = pd.DataFrame([record.model_dump() for record in records])
    table["ts"] = pd.to_datetime(table["ts"], utc=True)
    table["threshold"] = table.groupby("station")["threshold"].ffill()
    read = table.dropna(subset="temperature").copy()
    read["before"] = read.groupby("station")["temperature"].shift()
    alerts = read[(read["temperature"] - read["before"]).abs() > read["threshold"]]
    columns = alerts[["ts", "before", "temperature", "threshold"]].rename(columns={"temperature": "after"})
    stations = columns.groupby(alerts["station"])
    by_station: dict[str, Any] = {str(station): rows.to_dict("records") for station, rows in stations}
    return by_station
