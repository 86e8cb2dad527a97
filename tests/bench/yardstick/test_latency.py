from __future__ import annotations

import pytest

from bench.harness.load import SensorReading, Sent, readings
from bench.yardstick.latency import figures
from bench.yardstick.oracle import SnapshotDecoder
from tests.bench.yardstick.snapshots import encoded, honest

LOAD = list(readings(100, 5, end=1_800_000_000.0))


def sent(reading: SensorReading, at: float) -> Sent:
    return Sent(reading, at, at - 0.001)


def matched(begin: float, end: float) -> dict[str, float]:
    """One event a second, each answered after 2 ms, and again after a second; batches end every 30 s."""
    received = [(at + 0.002, value) for at, value in enumerate(encoded(honest(LOAD)))]
    again = sorted([*received, *((at + 1, value) for at, value in received)])
    events = [sent(reading, float(at)) for at, reading in enumerate(LOAD)]
    return figures(events, again, [30.0, 60.0, 90.0], SnapshotDecoder("state.events"), (begin, end))


def test_the_first_snapshot_of_an_event_counts() -> None:
    measured = matched(20.0, 70.0)
    assert measured["p50_ms"] == pytest.approx(2)
    assert measured["max_ms"] == pytest.approx(2)
    assert measured["events"] == 50


def test_batches_that_ended_in_it_are_counted() -> None:
    assert matched(20.0, 70.0)["boundaries"] == 2
    assert matched(31.0, 59.0)["boundaries"] == 0


def test_how_late_the_load_was_is_given() -> None:
    measured = matched(20.0, 70.0)
    assert measured["late_p99_ms"] == measured["late_max_ms"] == pytest.approx(1)
    assert measured["p99_from_due_ms"] == pytest.approx(3)


def test_the_largest_gap_between_snapshots() -> None:
    assert matched(20.0, 70.0)["gap_ms"] == pytest.approx(1000)
