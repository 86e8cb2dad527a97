from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from contracts.wire import Answer, Snapshot
from examples.flights.derived import last_flight

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


def _snapshot(state: dict[str, Any], **answers: Answer) -> Snapshot:
    return Snapshot(device_id="f", first_seen=NOON, version=1, as_of=NOON, state=state, enrichments=answers)


def test_flight_without_tail_number_derives_no_aircraft() -> None:
    assert list(last_flight(_snapshot({"status": "scheduled"}))) == []


def test_aircraft_has_its_flight_and_the_data_of_the_register() -> None:
    found = Answer(
        version=1,
        status="result",
        ts=NOON,
        fingerprint="f",
        result={"manufacturer": "BOEING", "model": "737-824"},
    )
    state = {"tailnum": "N1", "status": "landed", "dest": "SFO", "delay": -3, "events": 3}
    ((key, last),) = last_flight(_snapshot(state, aircraft=found))
    assert key == "N1"
    assert (last.flight, last.status, last.dest, last.delay) == ("f", "landed", "SFO", -3)
    assert (last.manufacturer, last.model) == ("BOEING", "737-824")


def test_absent_aircraft_leaves_the_flight() -> None:
    absent = Answer(version=1, status="absence", ts=NOON, fingerprint="f")
    ((_, last),) = last_flight(_snapshot({"tailnum": "N1"}, aircraft=absent))
    assert last.manufacturer is None
