"""The records of named states. What is none of one is tested with the ingest of the query service."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from contracts.model.named_state import NamedState
from contracts.records.state_record import (
    DEEPEST,
    MICROSECOND,
    StateRecord,
    StateRecordDecoder,
    Tombstone,
    UndecodableRecordError,
)
from contracts.wire.window_key import window_key

STATE = NamedState("flights", "snapshots", {}, 2, key="device_id", lifetime=timedelta(hours=1), windowed=True)
START = datetime(2026, 1, 1, 8, 0, 0, 123_457, tzinfo=UTC)
START_US = (START - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND
STAMP_MS = START_US // 1000 + 10
VALUE = {"device_id": "é", "first_seen": START, "epoch": 3, "version": 9, "as_of": START + MICROSECOND}


def test_times_have_the_precision_of_the_wire() -> None:
    record = StateRecordDecoder(STATE).value(b"any", orjson.dumps(VALUE), 42, STAMP_MS)
    assert record == StateRecord("é", START_US, 3, 9, START_US + 1)


def test_a_tombstone_names_its_window_to_the_microsecond() -> None:
    assert StateRecordDecoder(STATE).tombstone(window_key("é", START)) == Tombstone("é", START_US)


def test_a_source_is_a_number_that_fits_eight_bytes_with_a_sign() -> None:
    decoder = StateRecordDecoder(replace(STATE, source="device_id"))
    sources = [
        decoder.value(b"", orjson.dumps({**VALUE, "device_id": device}), 0, STAMP_MS).source
        for device in ("a", "é", "a")
    ]
    assert sources[0] == sources[2] != sources[1]
    assert all(0 < source < 1 << 56 for source in sources)


def test_a_copy_has_the_version_of_the_first_record() -> None:
    alerts = replace(STATE, epoch="layout", version=None, copied_from="copied_from")
    decoder = StateRecordDecoder(alerts)
    orders = []
    for fields in ({}, {"copied_from": 7}, {"layout": 4}, {"layout": 4, "copied_from": 0}):
        record = decoder.value(b"any", orjson.dumps(VALUE | fields), 42, STAMP_MS)
        orders.append((record.epoch, record.version))
    assert orders == [(0, 42), (0, 7), (4, 42), (4, 0)]


def test_undeclared_paths_default_to_the_record() -> None:
    table = replace(STATE, key=None, window_start=None, epoch=None, version=None, event_time=None, windowed=False)
    decoder = StateRecordDecoder(table)
    assert decoder.value(b"k", b"{}", 42, 7) == StateRecord("k", 0, 0, 42, 7000)
    assert decoder.tombstone(b"k") == Tombstone("k", None)


@pytest.mark.parametrize("text", ['{"a":%s}', '{"device_id":"[","b":[%s,{}]}'])
def test_a_value_that_is_nested_too_deep_for_a_response_is_none(text: str) -> None:
    decoder = StateRecordDecoder(replace(STATE, key=None, window_start=None, epoch=None, version=None, event_time=None))

    def nested(levels: int) -> bytes:
        around = text.count("{", 0, text.index("%")) + text.count("[", text.rfind('"'), text.index("%"))
        return (text % ("[" * (levels - around) + "]" * (levels - around))).encode()

    assert decoder.value(b"k", nested(DEEPEST), 42, 7).key == "k"
    for levels in (DEEPEST + 1, 1024):
        assert orjson.loads(nested(levels))
        with pytest.raises(UndecodableRecordError, match="has more than 1000 levels"):
            decoder.value(b"k", nested(levels), 42, 7)
    wide = orjson.dumps({"a": [[{}]] * 1000})
    assert decoder.value(b"k", wide, 42, 7).key == "k"
