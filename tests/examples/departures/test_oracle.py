"""The windows of the plain fold, and those of the tables; and what the comparison notices."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from contracts.testing import Clock, Loop
from contracts.wire import Snapshot
from examples.departures.application import carriers, departures
from examples.departures.event import Departure
from examples.flights import tables
from examples.flights.stream import stream
from tests.examples.departures.agreement import differences
from tests.examples.departures.oracle import Expected, WindowKey, by_day, by_hour

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts import Application

FIRST = date(2013, 2, 7)
"""The blizzard of the 8th cancelled many flights."""
DAYS = 4


@pytest.fixture(scope="module")
def events() -> list[Departure]:
    return [Departure.model_validate(event.model_dump()) for event in stream(tables.days(FIRST, DAYS))]


def within(windows: dict[WindowKey, Expected]) -> dict[WindowKey, Expected]:
    """The windows of which every event is among these days' flights."""
    begin, end = datetime(2013, 2, 8, 5, tzinfo=UTC), datetime(2013, 2, 11, 5, tzinfo=UTC)
    return {key: one for key, one in windows.items() if begin <= key[1] < end}


@pytest.mark.parametrize(("application", "oracle"), [(departures, by_hour), (carriers, by_day)], ids=["hour", "day"])
def test_every_window_of_the_fold_is_as_the_tables_have_it(
    events: list[Departure], application: Application, oracle: Callable[[int], dict[WindowKey, Expected]]
) -> None:
    loop = Loop(application, {}, Clock(datetime(2026, 1, 1, tzinfo=UTC)))
    for event in events:
        with suppress(KeyError):  # of an event that is filtered out, before the first window of its key
            loop.send(event)
    wanted = within(oracle(FIRST.month))
    found = {window: differences(one, loop.snapshot(*window)) for window, one in wanted.items()}
    assert {window: wrong for window, wrong in found.items() if wrong} == {}
    assert sum(one.cancelled for one in wanted.values()) > 400


SOME = Expected(departed=4, cancelled=1, late=1, delays=[-2, 0, 3, 40], destinations={"BOS": 2, "ATL": 1, "SFO": 1})
STATE: dict[str, Any] = {
    "flights": 4,
    "cancelled": 1,
    "late": 1,
    "total_delay": 41,
    "mean_delay": 10.25,
    "worst_delay": 40,
    "delays": [0.0, 40.0, 40.0],
    "destinations": [{"value": "BOS", "count": 2}, {"value": "ATL", "count": 1}, {"value": "SFO", "count": 1}],
}


def snapshot(version: int = 5, **changed: Any) -> Snapshot:
    time = datetime(2013, 2, 8, tzinfo=UTC)
    return Snapshot(device_id="JFK", first_seen=time, version=version, as_of=time, state=STATE | changed)


def test_a_window_that_is_as_expected_has_no_differences() -> None:
    assert differences(SOME, snapshot()) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 6},
        {"flights": 5},
        {"mean_delay": 10.3},
        {"worst_delay": None},
        {"delays": [0.0, 40.0]},
        {"delays": [40.0, 40.0, 40.0]},
        {"delays": [1.0, 40.0, 40.0]},
        {"destinations": STATE["destinations"][:2]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_change_of_a_window_is_a_difference(changed: dict[str, Any]) -> None:
    assert len(differences(SOME, snapshot(**changed))) == 1


def test_quantiles_may_be_off_by_their_bound() -> None:
    delays = list(range(300))
    expected = Expected(len(delays), 0, 0, delays, {})
    state: dict[str, Any] = {"flights": 300, "cancelled": 0, "late": 0, "total_delay": sum(delays), "mean_delay": 149.5}
    state |= {"worst_delay": 299, "destinations": []}
    for values, wrong in (([145, 265, 292], 0), ([153, 273, 299], 0), ([154, 269, 296], 1), ([149, 264, 296], 1)):
        found = snapshot(300).model_copy(update={"state": state | {"delays": values}})
        assert len(differences(expected, found)) == wrong, values
