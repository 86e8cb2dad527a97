"""The copies that are made of records whose versions are offsets, also after copying was interrupted."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from contracts.records.named_states import named
from contracts.records.record import Record, timestamp_ms
from contracts.wire.alert_record import AlertRecord
from contracts.wire.partition import partition
from contracts.wire.window_key import parse_window_key, window_key
from services.tools.topics.rewrite import RecordMover
from tests.services.derive.alerted import APP

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SENSORS = ("a", "b", "c")
AFTER = 5
STATE = named(APP)["too_high"]


def record_at(sensor: str, offset: int, value: bytes | None) -> Record:
    """A record of the topic."""
    return Record(STATE.topic, 0, offset, timestamp_ms(NOON), window_key(sensor, NOON), value)


def stored(sensor: str, offset: int) -> Record:
    """A record that a worker has written."""
    record = AlertRecord(
        device_id=sensor,
        first_seen=NOON,
        version=1,
        as_of=NOON,
        offset=77,
        status="closed",
        alerts=(),
        changed=("an alert",),
        layout=2,
    )
    return record_at(sensor, offset, record.encode())


def copied(mover: RecordMover, records: list[Record]) -> list[Record]:
    """The copies, in the order in which they are written."""
    copies: list[Record] = []
    for record in records:
        if (copy := mover.moved(record)) is not None:
            number, value = copy
            sensor, _ = parse_window_key(record.key or b"")
            assert number == partition(sensor.encode(), AFTER)
            copies.append(record_at(sensor, len(copies), value))
    return copies


@given(st.lists(st.sampled_from(SENSORS), max_size=12), st.integers(0, 12), st.data())
def test_each_record_has_one_newest_copy_in_order(sensors: list[str], done: int, data: st.DataObject) -> None:
    records = [stored(sensor, offset) for offset, sensor in enumerate(sensors)]
    earlier = copied(RecordMover(STATE, AFTER, AlertRecord), records[:done])
    first = data.draw(st.lists(st.booleans(), min_size=len(records) + len(earlier)))
    waiting, merged = [list(records), list(earlier)], []
    for is_copy in first:  # the partitions are read in any order
        merged += [some.pop(0) for some in [waiting[is_copy] or waiting[not is_copy]] if some]
    assert len(merged) == len(records) + len(earlier)
    moved = copied(RecordMover(STATE, AFTER, AlertRecord), merged)
    for sensor in SENSORS:
        values = [record.value or b"" for record in moved if record.key == window_key(sensor, NOON)]
        copies = [AlertRecord.model_validate_json(value) for value in values]
        offsets = [offset for offset, name in enumerate(sensors) if name == sensor]
        assert [copy.copied_from for copy in copies] == offsets
        assert {(copy.layout, copy.offset, copy.changed) for copy in copies} <= {(2, -1, ())}


def test_unreadable_records_are_left_out() -> None:
    mover = RecordMover(STATE, AFTER, AlertRecord)
    records = [record_at("a", 0, b"{"), record_at("a", 1, b"{}"), record_at("a", 2, None)]
    assert copied(mover, records) == [record_at("a", 0, None)]
