from __future__ import annotations

from datetime import datetime

import orjson

from bench.harness.load import readings
from bench.yardstick.application import Reading

NOW = 1_800_000_000.0


def test_the_same_load_for_every_job() -> None:
    assert list(readings(100, 7, NOW)) == list(readings(100, 7, NOW))


def test_each_event_is_one_of_the_application() -> None:
    for reading in readings(50, 5, NOW):
        event = Reading.model_validate(orjson.loads(reading.encode()))
        assert event.ts.timestamp() <= NOW


def test_a_device_says_when_it_was_first_seen_and_counts_its_events() -> None:
    first: dict[str, str] = {}
    last: dict[str, int] = {}
    for reading in readings(500, 20, NOW):
        assert reading.first_seen == first.setdefault(reading.device, reading.ts)
        assert reading.number == last.get(reading.device, 0) + 1
        last[reading.device] = reading.number


def test_times_are_written_with_microseconds_always() -> None:
    for reading in readings(20, 2, NOW):
        assert len(reading.ts) == len("2026-01-01T00:00:00.000000+00:00")
        assert datetime.fromisoformat(reading.ts).tzinfo
