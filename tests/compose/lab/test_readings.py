from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.wire import Snapshot
from tests.compose.lab.readings.__main__ import newest, unserved, wrong_count

TODAY = datetime(2026, 5, 2, tzinfo=UTC)
RESULT = {"version": 1, "status": "result", "ts": TODAY, "fingerprint": "f", "result": {"name": "South hall"}}


def snapshot(device: str, readings: int, *, day: datetime = TODAY, answer: dict[str, Any] | None = RESULT) -> Snapshot:
    enrichments = {"location": answer} if answer else {}
    times = {"first_seen": day, "as_of": day}
    state = {"readings": readings}
    return Snapshot.model_validate(
        {"device_id": device, "version": readings, "state": state, "enrichments": enrichments, **times}
    )


@pytest.mark.parametrize(
    ("least", "is_exact", "is_right"),
    [(5, True, True), (5, False, True), (4, False, True), (4, True, False), (6, False, False), (6, True, False)],
)
def test_readings_that_are_lost_or_counted_twice_are_found(least: int, *, is_exact: bool, is_right: bool) -> None:
    published = [snapshot("a", 2), snapshot("a", 1, day=TODAY - timedelta(days=1)), snapshot("b", 2)]
    assert (wrong_count(published, least, is_exact=is_exact) == "") is is_right


def test_the_query_service_serves_the_newest_window_of_each_device_or_a_later_snapshot() -> None:
    published = newest([snapshot("a", 1), snapshot("a", 9, day=TODAY - timedelta(days=1)), snapshot("b", 2)])
    assert unserved(published, {"a": snapshot("a", 1), "b": snapshot("b", 3)}) == ""
    assert "['b']; without location: []" in unserved(published, {"a": snapshot("a", 1), "b": snapshot("b", 1)})
    assert "['b']; without location: []" in unserved(published, {"a": snapshot("a", 1)})


def test_a_device_without_the_result_of_its_enrichment_is_found() -> None:
    published = newest([snapshot("a", 1)])
    absent = RESULT | {"status": "absence", "result": None}
    for answer in (None, absent):
        assert "without location: ['a']" in unserved(published, {"a": snapshot("a", 1, answer=answer)})
