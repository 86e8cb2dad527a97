"""The decoding of records, valid and invalid."""

from __future__ import annotations

import json as standard
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.model.named_state import NamedState
from contracts.records.record import Record
from contracts.records.state_record import AHEAD_MS, UndecodableRecordError
from contracts.wire.copy_header import copied_headers
from contracts.wire.window_key import window_key
from services.query.ingest.decode import UpdateDecoder
from services.query.store import Entry, Update

STATE = NamedState("flights", "snapshots", {}, 2, lifetime=timedelta(hours=1))
TABLE = replace(STATE, window_start=None, version=None, event_time=None, lifetime=None)
WINDOWED = replace(STATE, key="device_id", windowed=True)
DERIVED = replace(STATE, key="about.key")
GOOD = {
    "first_seen": "2026-01-01T00:00:00Z",
    "epoch": 7,
    "version": 3,
    "as_of": "2026-01-01T01:00:00.123999+01:00",
    "state": {},
}
FIRST = 1_767_225_600_000


def read(value: object, key: bytes | None = b"AA/1") -> Record:
    return Record("snapshots", 1, 42, FIRST + 5, key, value if isinstance(value, bytes) else orjson.dumps(value))


def test_a_snapshot_is_an_update() -> None:
    expected = Entry(FIRST, 7, 3, FIRST + 123, 1, 42, orjson.dumps(GOOD))
    assert UpdateDecoder(STATE).decode(read(GOOD)) == Update("AA/1", 1, 42, expected)


def test_a_record_without_declared_fields_has_defaults() -> None:
    assert UpdateDecoder(TABLE).decode(read({})) == Update("AA/1", 1, 42, Entry(0, 0, 42, FIRST + 5, 1, 42, b"{}"))


def test_a_record_without_an_epoch_has_epoch_zero() -> None:
    without = {name: value for name, value in GOOD.items() if name != "epoch"}
    for state, record in ((STATE, without), (replace(STATE, epoch=None), GOOD)):
        update = UpdateDecoder(state).decode(read(record))
        assert update
        assert update.entry
        assert update.entry.epoch == 0
    with pytest.raises(UndecodableRecordError, match="epoch is not an integer"):
        UpdateDecoder(STATE).decode(read({**GOOD, "epoch": "7"}))


def test_copies_for_more_partitions_than_are_in_use_are_skipped() -> None:
    for value in (orjson.dumps(GOOD), None):
        record = read(GOOD)._replace(value=value)
        copy = record._replace(headers=copied_headers((), STATE.partitions + 1))
        growing, expected = replace(STATE, layout_topic="feedback"), UpdateDecoder(STATE).decode(record)
        assert expected is not None
        assert UpdateDecoder(growing).decode(copy) is None
        assert UpdateDecoder(replace(growing, partitions=3)).decode(copy) == expected
        assert UpdateDecoder(STATE).decode(copy) == expected, "its producer has copied the header from another topic"


def test_times_may_be_milliseconds_or_lack_an_offset() -> None:
    update = UpdateDecoder(STATE).decode(read({**GOOD, "first_seen": 7, "as_of": "1970-01-01T00:00:01"}))
    assert update
    assert update.entry
    assert (update.entry.window_start, update.entry.event_time) == (7, 1000)


def test_the_key_may_be_in_the_value() -> None:
    update = UpdateDecoder(DERIVED).decode(read({**GOOD, "about": {"key": "é"}}, b"of device 1"))
    assert update
    assert update.key == "é"


def test_a_tombstone_is_a_removal() -> None:
    assert UpdateDecoder(STATE).decode(Record("snapshots", 1, 42, 0, b"a", None)) == Update("a", 1, 42, None)
    assert UpdateDecoder(DERIVED).decode(Record("snapshots", 1, 42, 0, b"a of device 1", None)) is None


def test_a_tombstone_of_a_window_removes_the_window() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert UpdateDecoder(WINDOWED).decode(Record("snapshots", 1, 42, 0, window_key("a", at), None)) == Update(
        "a", 1, 42, None, FIRST
    )
    for key in (None, b"a", window_key("", at), window_key("x" * 501, at)):
        with pytest.raises(UndecodableRecordError, match="its key"):
            UpdateDecoder(WINDOWED).decode(Record("snapshots", 1, 42, 0, key, None))


def test_a_record_of_a_window_is_an_entry_of_its_device() -> None:
    key = window_key("a", datetime(2026, 1, 1, tzinfo=UTC))
    update = UpdateDecoder(WINDOWED).decode(read({**GOOD, "device_id": "a"}, key))
    assert update
    assert (update.key, update.window_start) == ("a", None)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (read(b""), "is not JSON"),
        (read(b"{"), "is not JSON"),
        (read(b"\xff"), "is not JSON"),
        (read([]), "is not a JSON object"),
        (read(GOOD, None), "has no key"),
        (read(GOOD, b"\xff"), "its key is not UTF-8"),
        (read(GOOD, b""), "its key has 0 bytes"),
        (read(GOOD, b"x" * 501), "its key has 501 bytes"),
        (read({**GOOD, "version": None}), "version is not an integer"),
        (read({**GOOD, "as_of": "0001-01-01T00:00:00+02:00"}), "as_of is before the year 1"),
        (read({**GOOD, "version": True}), "version is not an integer"),
        (read({**GOOD, "version": 1.0}), "version is not an integer"),
        (read({**GOOD, "version": 1 << 63}), "version is not an integer"),
        (read({**GOOD, "first_seen": "yesterday"}), "first_seen is not a time"),
        (read({**GOOD, "as_of": None}), "as_of is not an integer"),
        (read({**GOOD, "first_seen": FIRST + 6 + AHEAD_MS}), "its window starts a day or more after"),
        (Record("snapshots", 1, 42, 0, None, None), "has no key"),
    ],
)
def test_an_invalid_record_raises(record: Record, reason: str) -> None:
    with pytest.raises(UndecodableRecordError, match=reason):
        UpdateDecoder(STATE).decode(record)


@pytest.mark.parametrize("value", [GOOD, {**GOOD, "about": "x"}, {**GOOD, "about": {"key": 5}}, {**GOOD, "about": {}}])
def test_a_value_without_the_key_raises(value: dict[str, Any]) -> None:
    with pytest.raises(UndecodableRecordError, match=r"about\.key is not a string"):
        UpdateDecoder(DERIVED).decode(read(value))


def test_a_state_without_lifetime_may_start_at_any_time() -> None:
    update = UpdateDecoder(replace(STATE, lifetime=None)).decode(read({**GOOD, "first_seen": FIRST * 2}))
    assert update


def test_a_record_without_timestamp_may_start_at_any_time() -> None:
    """Without a timestamp, a wrong clock cannot be detected."""
    update = UpdateDecoder(STATE).decode(read(GOOD)._replace(timestamp_ms=-1))
    assert update


@given(st.datetimes(datetime(1, 1, 3), timezones=st.timezones()))  # noqa: DTZ001 (the strategy adds the zone)
def test_times_are_floored_to_milliseconds(time: datetime) -> None:
    update = UpdateDecoder(replace(STATE, lifetime=None)).decode(read({**GOOD, "first_seen": time.isoformat()}))
    assert update
    assert update.entry
    since = datetime.fromisoformat(time.isoformat()) - datetime(1970, 1, 1, tzinfo=UTC)
    millisecond = timedelta(milliseconds=1)
    assert update.entry.window_start * millisecond <= since < (update.entry.window_start + 1) * millisecond


json = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists)
fields = st.sampled_from(["first_seen", "version", "as_of", "about"])
documents = st.dictionaries(fields, json | st.dictionaries(st.text(), json))


@given(st.binary() | documents.map(lambda one: standard.dumps(one).encode()))
def test_any_record_is_an_update_or_undecodable(value: bytes) -> None:
    for state in (STATE, TABLE, DERIVED):
        try:
            update = UpdateDecoder(state).decode(read(value))
        except UndecodableRecordError:
            continue
        assert update


def test_a_key_of_maximum_length_is_valid_in_a_windowed_state() -> None:
    windowed = replace(STATE, window=timedelta(hours=1), windowed=True)
    assert UpdateDecoder(windowed).decode(read(GOOD, b"z" * 500))
    assert UpdateDecoder(windowed).decode(read(GOOD, b"\0" * 250))
    for record in (
        read(GOOD, b"\0" * 251),
        Record("snapshots", 1, 42, FIRST, b"\0" * 251 + b"@2026-05-01T08:00:00.000000Z", None),
    ):
        with pytest.raises(UndecodableRecordError, match="zero bytes"):
            UpdateDecoder(windowed).decode(record)
    assert UpdateDecoder(STATE).decode(read(GOOD, b"\0" * 251))
