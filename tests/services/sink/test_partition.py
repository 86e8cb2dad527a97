"""How far a store has the records of a partition."""

from __future__ import annotations

from contracts.sinks import Move
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.partition import AssignedPartition
from services.sink.partition import SinkPartition
from tests.services.runtime.worker.assigned import assigned
from tests.services.sink.records import Change, record


def reading(*offsets: int, stored: int | None = None) -> SinkPartition:
    """A partition that has read these offsets, with this position in the store."""
    state = SinkPartition(assigned())
    for offset in offsets:
        state.partition.put(record(Change("a"), 0, offset))
    state.stored = stored
    return state


def test_a_partition_goes_on_from_the_position_in_the_store() -> None:
    state = reading(5, 6, stored=5)
    assert not state.lacks_records()
    last = record(Change("a"), 0, 6)
    assert state.move(last) == Move(5, 7)
    state.written(last)
    assert [state.partition.position, state.required] == [7, 7]
    following = record(Change("a"), 0, 9)  # compaction has removed 7 and 8
    state.partition.put(following)
    assert not state.lacks_records()
    assert state.move(following) == Move(7, 10)


def test_records_that_the_store_has_are_written_again() -> None:
    state = reading(5, stored=100)
    assert not state.lacks_records()
    assert state.move(record(Change("a"), 0, 5)) == Move(100, 6)


def test_a_store_without_the_records_before_lacks_them() -> None:
    assert reading(5, stored=0).lacks_records()
    assert reading(5, stored=4).lacks_records()
    assert not reading(5).lacks_records(), "its position is unknown"
    assert not reading(stored=4).lacks_records(), "no record was read"


def test_a_store_that_loses_writes_is_noticed_by_its_position() -> None:
    state = reading(5, 6, stored=5)
    state.written(record(Change("a"), 0, 6))
    state.note_conflict(6)
    assert state.lacks_records()


def test_a_conflict_of_another_partition_leaves_everything() -> None:
    """Its topic was created again: the position is the one that the store had of the former one."""
    state = reading(1, 2, stored=501)
    records = [record(Change("a"), 0, offset) for offset in (1, 2)]
    state.note_conflict(501)
    assert state.unwritten(records) == records
    assert state.move(records[1]) == Move(501, 3)


def test_conflicts_of_two_partitions_leave_what_the_store_lacks_of_each() -> None:
    first, second = reading(5, 6, 7, stored=5), reading(5, 6, 7, stored=5)
    records = [record(Change("a"), 0, offset) for offset in (5, 6, 7)]
    for state, position in ((first, 7), (second, 6), (first, 7), (second, 5)):  # the second one has gone back
        state.note_conflict(position)
    assert (first.unwritten(records), first.move(records[-1])) == (records[2:], Move(7, 8))
    assert (second.unwritten(records), second.move(records[-1])) == (records, Move(5, 8))


def test_a_conflict_leaves_only_what_the_store_lacks() -> None:
    state = reading(5, 6, 7, 8, stored=5)
    records = [record(Change("a"), 0, offset) for offset in (5, 6, 7, 8)]
    assert state.unwritten(records) == records
    state.note_conflict(7)
    assert not state.lacks_records()
    assert state.unwritten(records) == records[2:]
    state.skip(records[1])
    assert (state.partition.position, state.required) == (7, 7)
    assert state.move(records[3]) == Move(7, 9)


def test_a_reopened_partition_is_read_from_the_position_in_the_store() -> None:
    partition = AssignedPartition(0, Backpressure(1000, 1000), lambda _: NotImplemented, lambda *_: None, start=3)
    state = SinkPartition(partition)
    assert (state.stored, state.required) == (3, 3)
    partition.put(record(Change("a"), 0, 8))  # the topic has no earlier ones
    assert not state.lacks_records()
    assert state.move(record(Change("a"), 0, 8)) == Move(3, 9)


def test_the_store_must_have_reached_the_first_record_of_a_partition() -> None:
    state = reading()
    assert state.required is None
    state.partition.first = 7
    assert state.required == 7
