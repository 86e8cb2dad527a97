"""The newest snapshot of each window in the records of a topic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from contracts.records.record import Record, timestamp_ms
from contracts.wire import Snapshot
from contracts.wire.window_key import window_key
from services.tools.verify.sample import NamedKeys
from services.tools.verify.snapshots import newest_of

START = datetime(2026, 5, 1, 8, tzinfo=UTC)
LATER = START + timedelta(hours=1)


def record(value: bytes | None, start: datetime = START, key: str = "k") -> Record:
    return Record("snapshots", 0, 0, timestamp_ms(START), window_key(key, start), value)


def snapshot(version: int, start: datetime = START, epoch: int = 1, key: str = "k") -> Record:
    found = Snapshot(device_id=key, first_seen=start, epoch=epoch, version=version, as_of=start, state={})
    return record(found.model_dump_json().encode(), start, key)


def versions(*records: Record) -> dict[datetime | None, tuple[int, int]]:
    """Return the epoch and the version of each window of the key `k`."""
    stored = newest_of(records, NamedKeys(["k"])).stored.snapshots
    return {start: kept.snapshot.order for (_, start), kept in stored.items()}


def test_the_newest_snapshot_of_each_window_counts_whatever_the_order_of_the_records() -> None:
    assert versions(snapshot(2), snapshot(1), snapshot(7, LATER)) == {START: (1, 2), LATER: (1, 7)}
    assert versions(snapshot(9), snapshot(1, epoch=2)) == {START: (2, 1)}


def test_a_record_without_value_removes_its_window() -> None:
    assert versions(snapshot(1), snapshot(7, LATER), record(None)) == {LATER: (1, 7)}
    assert versions(record(None), snapshot(1)) == {START: (1, 1)}


def test_a_record_that_is_no_snapshot_counts_for_nothing() -> None:
    garbage = Record("snapshots", 0, 0, timestamp_ms(START), b"no window", b"{}")
    assert versions(garbage, snapshot(1), record(b"{")) == {START: (1, 1)}


def test_the_newest_window_may_be_of_a_key_that_is_not_chosen() -> None:
    content = newest_of([snapshot(1), snapshot(1, LATER, key="other")], NamedKeys(["k"]))
    assert content.newest_window == LATER
    assert list(content.stored.snapshots) == [("k", START)]
