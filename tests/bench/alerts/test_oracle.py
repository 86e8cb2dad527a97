from __future__ import annotations

import orjson

from bench.alerts.oracle import ReadAlert, Transition, check, decode, transitions
from bench.harness.load import SensorReading

OPEN, CLOSED = Transition("d0", 2, "open"), Transition("d0", 4, "closed")


def readings(device: str, *temperatures: float) -> list[SensorReading]:
    return [SensorReading(device, number, "", "", temperature) for number, temperature in enumerate(temperatures, 1)]


def test_an_alert_opens_with_a_change_and_closes_with_the_next_temperature_like_the_one_before() -> None:
    both = zip(readings("d0", 10, 20, 5, 6, 7), readings("d1", 10, 19, 10, 1, 1), strict=True)
    assert list(transitions((reading for pair in both for reading in pair), 10)) == [OPEN, CLOSED]


def test_a_record_has_all_its_alerts() -> None:
    alerts = [
        {"rule": "r", "rule_version": 3, "status": "closed"},
        {"id": "x", "rule": "r", "rule_version": 4, "status": "open"},
    ]
    value = orjson.dumps({"device_id": "d0", "version": 7, "as_of": "2026-05-01T08:00:00Z", "alerts": alerts})
    assert decode(value) == [
        ReadAlert(Transition("d0", 7, "closed"), 3),
        ReadAlert(Transition("d0", 7, "open"), 4),
    ]


def test_each_alert_must_be_there_once() -> None:
    assert check([OPEN, CLOSED], [CLOSED, OPEN]).right
    assert check([OPEN, CLOSED], [OPEN]).missing == 1
    assert check([OPEN], [OPEN, OPEN]).duplicates == 1
    report = check([OPEN], [OPEN, CLOSED])
    assert (report.unknown, report.example, report.right) == (1, repr(CLOSED), False)
