"""A watch yields no update twice, and none after a later one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.client.answers import Removed, found
from services.client.high_water_marks import HighWaterMarks, YieldedVersions

START = "2026-01-01T12:00:00.000Z"


def admitted(*versions: tuple[int, bool]) -> list[bool]:
    """Return whether each of these updates of one window is yielded; an update is a version and whether it is open."""
    yielded = YieldedVersions(HighWaterMarks(10), {"departures"})
    return [yielded.admits(found(body(*version), lambda value: value)) for version in versions]


def body(version: int, is_open: bool = True, start: str = START) -> dict[str, Any]:  # noqa: FBT001, FBT002
    return {
        "state": "departures",
        "key": "JFK",
        "epoch": 0,
        "version": version,
        "window_start": start,
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


@pytest.mark.parametrize(("removed", "is_returned"), [(timedelta(hours=1), True), (timedelta(), False)])
def test_a_watch_of_all_windows_lets_reads_go_back_behind_a_removed_one(
    removed: timedelta,
    is_returned: bool,  # noqa: FBT001
) -> None:
    marks, first = HighWaterMarks(10), datetime(2026, 1, 1, 12, tzinfo=UTC)
    watch = YieldedVersions(marks, {"departures"})
    newest = (first + timedelta(hours=1)).isoformat()
    assert marks.admits(found(body(1, start=newest), lambda value: value))
    assert watch.admits(Removed("departures", "JFK", first + removed))
    assert marks.admits(found(body(2), lambda value: value)) is is_returned
