from __future__ import annotations

from collections import Counter
from datetime import datetime

import orjson
import pytest
from confluent_kafka import KafkaException, Producer

from bench.harness.load import IN_ORDER, Fleet, keyed, readings
from bench.yardstick.application import DeviceReading

NOW = 1_800_000_000.0


def test_the_same_load_for_every_job() -> None:
    assert list(readings(100, 7, NOW)) == list(readings(100, 7, NOW))


def test_each_event_is_one_of_the_application() -> None:
    for reading in readings(50, 5, NOW):
        event = DeviceReading.model_validate(orjson.loads(reading.encode()))
        assert event.ts.timestamp() <= NOW


def test_a_device_sends_when_it_was_first_seen_and_counts_its_events() -> None:
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


def test_all_devices_take_as_many_turns() -> None:
    fleet, turns = Fleet(10), 20_000
    readings_by_device = Counter(fleet.reading(NOW).device for _ in range(turns))
    assert min(readings_by_device.values()) / max(readings_by_device.values()) > 0.9


def test_a_retry_changes_no_order() -> None:
    assert keyed("127.0.0.1:1", linger_ms=0)
    with pytest.raises(KafkaException, match="idempotence"):
        Producer(IN_ORDER | {"acks": 0})
