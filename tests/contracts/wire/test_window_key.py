"""Keys of records that name a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.wire.window_key import derived_key, parse_window_key, window_key

START = datetime(2026, 5, 1, 8, tzinfo=UTC)
devices = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
starts = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 (the strategy adds the zone)


def test_a_key_is_the_device_and_the_start_in_utc() -> None:
    assert window_key("scooter-7", START) == b"scooter-7@2026-05-01T08:00:00.000000Z"
    assert window_key("scooter-7", START.astimezone(timezone(timedelta(hours=2)))) == window_key("scooter-7", START)
    assert derived_key("é", "d", START) == "é\x1fd@2026-05-01T08:00:00.000000Z".encode()


@given(devices, starts)
def test_a_key_names_its_window_and_no_other(device: str, start: datetime) -> None:
    assert parse_window_key(window_key(device, start)) == (device, start)


@given(devices, starts)
def test_a_device_named_like_a_window_is_another_device(device: str, start: datetime) -> None:
    named = window_key(device, start).decode()
    assert parse_window_key(window_key(named, start)) == (named, start)


@given(st.binary(max_size=60))
def test_any_other_key_is_refused(key: bytes) -> None:
    try:
        device, start = parse_window_key(key)
    except ValueError:
        return
    assert window_key(device, start) == key


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"scooter-7",
        b"@2026-05-01T08:00:00.000000Z",
        b"d@2026-05-01T08:00:00.000000",
        b"d@2026-13-01T08:00:00.000000Z",
        b"d@2026-05-01 08:00:00.000000Z",
        b"d@2026-05-01T08:00:00.0+01:00",
        b"d@0001-01-01T00:00:00.0+01:00",
        b"d@9999-12-31T23:59:59.9-01:00",
    ],
)
def test_a_key_without_a_window_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"window|isoformat|month|utf-8"):
        parse_window_key(key)
