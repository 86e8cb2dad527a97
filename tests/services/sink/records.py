"""Records of a state's topic, and what a store has after them: the oracle of the sinks' tests."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts.model.named_state import NamedState
from contracts.records.record import Record, timestamp_ms
from contracts.sinks import Windows
from contracts.testing.stores import StoredRow
from contracts.wire.window_key import window_key

if TYPE_CHECKING:
    from collections.abc import Iterable

LIFETIME, GRACE = timedelta(hours=1), timedelta(minutes=5)
STATE = NamedState(
    "flights", "snapshots", {}, 4, key="device_id", lifetime=LIFETIME, grace=GRACE, windowed=True, expires_by_clock=True
)
TABLE = replace(STATE, key=None, window_start=None, epoch=None, version=None, event_time=None, windowed=False)
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW_US = 1_767_225_600_000_000
"""The time of START."""


class Change(NamedTuple):
    """A record of a windowed state: a version of a key's window, or the deletion of the window."""

    key: str
    window: int = 0
    """In hours after START."""
    epoch: int = 0
    version: int | None = 1
    """None for a deletion."""
    padding: str = ""


def document(change: Change) -> dict[str, object]:
    start = START + change.window * HOUR
    order = {"epoch": change.epoch, "version": change.version}
    return {"device_id": change.key, "first_seen": start, **order, "as_of": start, "state": {"text": change.padding}}


def record(change: Change, partition: int = 0, offset: int = 0) -> Record:
    start = START + change.window * HOUR
    value = None if change.version is None else orjson.dumps(document(change))
    return Record("snapshots", partition, offset, timestamp_ms(start), window_key(change.key, start), value)


def row(change: Change) -> StoredRow:
    start_us = NOW_US + change.window * 3_600_000_000
    assert change.version is not None
    return StoredRow(change.key, start_us, change.epoch, change.version, 0, json.loads(orjson.dumps(document(change))))


def folded(changes: Iterable[Change], windows: Windows) -> list[StoredRow]:
    """Return the rows after these records, one by one."""
    rows: dict[tuple[str, int], StoredRow] = {}
    for change in changes:
        key = change.key, change.window if windows is Windows.ALL else 0
        present = rows.get(key)
        if change.version is not None:
            new = row(change)
            if present is None or new[1:4] > present[1:4]:
                rows[key] = new
        elif present is not None and present.window_start == NOW_US + change.window * 3_600_000_000:
            del rows[key]
    return sorted(rows.values())
