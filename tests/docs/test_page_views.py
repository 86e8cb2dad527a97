"""The application of docs/how-to/windows.md does what that page states."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from contracts import composite_key
from contracts.records.record import Reason, RecordError
from contracts.testing import Clock, Loop
from tests.docs.page_views import View, app

NOON, MINUTE = datetime(2026, 5, 1, 12, tzinfo=UTC), timedelta(minutes=1)
KEY = composite_key("DE", "/start")


def view(number: int, ts: datetime) -> View:
    return View(event_id=str(number), country="DE", page="/start", visitor="v", ts=ts)


def test_each_hour_has_its_own_counts_until_it_is_closed() -> None:
    clock = Clock(NOON)
    loop = Loop(app, {}, clock)
    for number, minutes in enumerate((1, 59, 59)):
        clock.forward(NOON + minutes * MINUTE - clock())
        loop.send(view(number, clock()))
    clock.forward(3 * MINUTE)
    loop.send(view(3, clock()))
    loop.send(view(4, NOON + 59 * MINUTE))
    counts = {start: loop.snapshot(KEY, start).state["views"] for start in (NOON, NOON + 60 * MINUTE)}
    assert counts == {NOON: 4, NOON + 60 * MINUTE: 1}
    assert loop.snapshot(KEY) == loop.snapshot(KEY, NOON + 60 * MINUTE), "the newest"
    clock.forward(4 * MINUTE)
    with pytest.raises(RecordError, match="its last window ended more than 0:05:00 before") as late:
        loop.send(view(5, NOON + 59 * MINUTE))
    assert late.value.reason == Reason.LATE
