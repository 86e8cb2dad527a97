"""The two variants of the example: a rule over the merged state, and a processor, find the same changes."""

from __future__ import annotations

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Record, timestamp_ms
from examples.weather.application import TemperatureRule, app, changed
from examples.weather.processor import StationRecord, TemperatureChanges
from examples.weather.readings import Reading, readings

DEGREES = 4.99
"""Between two differences that the table has: the rule includes its limit, and the threshold does not."""


@pytest.mark.parametrize("station", ["EWR", "JFK", "LGA"])
def test_the_rule_and_the_processor_find_the_same_changes(station: str) -> None:
    year = [reading for reading in readings() if reading.station == station and reading.temperature is not None]
    found = by_rule(year)
    assert len(found) > 50
    assert by_processor(year) == found


def by_rule(year: list[Reading]) -> list[str]:
    """The readings after which the rule is true of the snapshot."""
    decoder, fold, rule = Decoder(app), Fold(app), TemperatureRule(degrees=DEGREES)
    found = []
    for offset, one in enumerate(year):
        record = Record("events", 0, offset, timestamp_ms(one.ts), one.station.encode(), one.model_dump_json().encode())
        (delta,) = decoder.event(record)
        snapshot = fold.add(delta)
        assert snapshot is not None
        if changed(snapshot, rule):
            found.append(one.event_id)
    return found


def by_processor(year: list[Reading]) -> list[str]:
    """The readings at which the processor adds an alert."""
    tester, alerts, found = TwsTester(TemperatureChanges(), timeMode="ProcessingTime"), 0, []
    fields = StationRecord.model_fields
    tester.test("station", [Row(**dict.fromkeys(fields) | {"threshold": DEGREES})])
    for one in year:
        (state,) = tester.test("station", [Row(**dict.fromkeys(fields) | one.model_dump())])
        if state.alerts > alerts:
            found.append(one.event_id)
        alerts = state.alerts
    return found
