"""The copies that are made of records whose versions are offsets, also after copying was interrupted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from contracts.records.named_states import named
from contracts.wire.alerts import AlertRecord
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.topics.rewrite import RecordMover
from tests.services.derive.alerted import APP

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SENSORS = ("a", "b", "c")
AFTER = 5
STATE = named(APP)["too_high"]


class Stored(NamedTuple):
    """A record of the topic, as the client gives it."""

    sensor: str
    at: int
    content: bytes | None

    def key(self) -> bytes:
        return window_key(self.sensor, NOON)

    def value(self) -> bytes | None:
        return self.content

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, round(NOON.timestamp() * 1000)


def stored(sensor: str, offset: int) -> Stored:
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
    return Stored(sensor, offset, record.encode())


def copied(mover: RecordMover, records: list[Stored]) -> list[Stored]:
    """The copies, in the order in which they are written."""
    found: list[Stored] = []
    for record in records:
        if (copy := mover.moved(record)) is not None:  # type: ignore[arg-type]  # it has what is read of a message
            number, value = copy
            assert number == partition(record.sensor.encode(), AFTER)
            found.append(Stored(record.sensor, len(found), value))
    return found


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
        found = [AlertRecord.model_validate_json(one.content or b"") for one in moved if one.sensor == sensor]
        assert [one.copied_from for one in found] == [offset for offset, one in enumerate(sensors) if one == sensor]
        assert {(one.layout, one.offset, one.changed) for one in found} <= {(2, -1, ())}


def test_unreadable_records_are_left_out() -> None:
    mover = RecordMover(STATE, AFTER, AlertRecord)
    assert copied(mover, [Stored("a", 0, b"{"), Stored("a", 1, b"{}"), Stored("a", 2, None)]) == [Stored("a", 0, None)]
