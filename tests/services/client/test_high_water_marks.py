"""A watch yields no update twice, and none after a later one."""

from __future__ import annotations

from typing import Any

from services.client.answers import found
from services.client.high_water_marks import HighWaterMarks, YieldedVersions

START = "2026-01-01T12:00:00.000Z"


def admitted(*versions: tuple[int, bool]) -> list[bool]:
    """Return whether each of these updates of one window is yielded; an update is a version and whether it is open."""
    yielded = YieldedVersions(HighWaterMarks(10), {"departures"})
    return [yielded.admits(found(body(*version), lambda value: value)) for version in versions]


def body(version: int, is_open: bool) -> dict[str, Any]:  # noqa: FBT001
    return {
        "state": "departures",
        "key": "JFK",
        "epoch": 0,
        "version": version,
        "window_start": START,
        "window_end": "2026-01-01T13:00:00.000Z",
        "is_open": is_open,
        "event_time": START,
        "age_ms": 0,
        "source": {"topic": "snapshots", "partition": 0, "offset": 0},
        "lag": {"records": 0},
        "role": "owner",
        "instance": "one",
        "value": {},
    }


def test_a_window_that_has_closed_is_yielded_once_more() -> None:
    assert admitted((1, True), (2, True), (2, False)) == [True, True, True]


def test_after_a_reconnect_neither_state_of_a_window_is_yielded_again() -> None:
    assert admitted((2, True), (2, True), (2, False), (2, True), (2, False), (1, False)) == [
        True,
        False,
        True,
        False,
        False,
        False,
    ]
