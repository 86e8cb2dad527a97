from __future__ import annotations

import pytest

from bench.harness.load import SensorReading, readings
from bench.yardstick.states import States
from tests.bench.yardstick.snapshots import honest

LOAD = list(readings(300, 20, end=1_800_000_000.0))


def test_the_state_after_each_reading() -> None:
    states = States(LOAD)
    assert len(states) == len(LOAD)
    for reading, snapshot in zip(LOAD, honest(LOAD), strict=True):
        place = states.place(reading.device, reading.number)
        assert place is not None
        assert states.expected(place).differs(snapshot["state"]) is None


def test_each_state_has_a_place_of_its_own() -> None:
    states = States(LOAD)
    assert {states.place(reading.device, reading.number) for reading in LOAD} == set(range(len(LOAD)))


@pytest.mark.parametrize(
    ("device", "number"), [("d0", 0), ("d0", -1), ("d0", 10_000), ("nobody", 1), (None, 1), ([], 1)]
)
def test_a_reading_that_was_never_sent_has_no_position(device: object, number: int) -> None:
    assert States(LOAD).place(device, number) is None


def test_the_last_of_a_device() -> None:
    states = States(LOAD)
    numbers = {reading.device: reading.number for reading in LOAD}
    for reading in LOAD:
        place = states.place(reading.device, reading.number)
        assert place is not None
        assert states.last(place) == (reading.number == numbers[reading.device])


def test_a_reading_that_is_older_than_the_last_one_changes_no_latest_value() -> None:
    late = [SensorReading("d", 1, "t1", "t2", 5.0), SensorReading("d", 2, "t1", "t1", 9.0)]
    states = States(late)
    assert states.expected(1) == (9.0, 7.0, 5.0, "t2")


def test_of_nothing_there_are_no_states() -> None:
    assert len(States([])) == 0
