"""The windows that contain a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Count, State
from contracts.model.windows import last_window_start, window_starts
from tests.windowed import spans, windowed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
times = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (the strategy adds the zone)


@given(spans(), times)
def test_the_windows_are_all_that_contain_the_time(span: tuple[timedelta, timedelta, timedelta], ts: datetime) -> None:
    window, every, offset = span
    starts = window_starts(windowed(*span), ts)
    assert len(starts) == window // every
    assert starts == sorted(set(starts))
    for start in starts:
        assert start <= ts < start + window
        assert (start - EPOCH - offset) % every == timedelta(0), "aligned to the epoch and the offset"
    assert starts[-1] == last_window_start(windowed(*span), ts)
    assert starts[-1] + every > ts


def test_windows_of_an_hour_begin_at_full_hours() -> None:
    hourly = windowed(HOUR, HOUR, timedelta(0))
    assert window_starts(hourly, datetime(2026, 1, 1, 12, 59, 59, 999_999, UTC)) == [
        datetime(2026, 1, 1, 12, tzinfo=UTC)
    ]
    assert window_starts(hourly, datetime(2026, 1, 1, 13, tzinfo=UTC)) == [datetime(2026, 1, 1, 13, tzinfo=UTC)]
    assert window_starts(hourly, EPOCH - MICROSECOND) == [EPOCH - HOUR]


def test_windows_of_a_day_begin_at_midnight_in_utc_when_clocks_change() -> None:
    daily = windowed(timedelta(days=1), timedelta(days=1), timedelta(0))
    berlin = ZoneInfo("Europe/Berlin")
    before, after = datetime(2026, 3, 29, 1, 59, tzinfo=berlin), datetime(2026, 3, 29, 3, tzinfo=berlin)
    assert window_starts(daily, before) == window_starts(daily, after) == [datetime(2026, 3, 29, tzinfo=UTC)]


def test_an_offset_moves_the_windows() -> None:
    daily = windowed(timedelta(days=1), timedelta(days=1), timedelta(hours=5))
    assert window_starts(daily, datetime(2026, 1, 2, 4, 59, tzinfo=UTC)) == [datetime(2026, 1, 1, 5, tzinfo=UTC)]


def test_a_state_with_a_lifetime_has_no_such_windows() -> None:
    class Expiring(State, lifetime=HOUR):
        events: Annotated[int, Count()]

    with pytest.raises(TypeError, match="Expiring has a lifetime"):
        window_starts(Expiring, EPOCH)
