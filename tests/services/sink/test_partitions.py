"""The progress of partitions, and their rewinds."""

from __future__ import annotations

from contracts.metrics import Metric
from contracts.metrics import sink as metrics
from contracts.sinks import Move
from services.sink.partitions import RoutedRecord, SinkPartitions
from tests.services.sink.records import Change, record


def assigned(*partitions: int, counted: list[Metric] | None = None) -> SinkPartitions:
    found = SinkPartitions((counted if counted is not None else []).append)
    found.on_assigned(list(partitions))
    return found


def read(partitions: SinkPartitions, *offsets: int, partition: int = 0) -> list[RoutedRecord]:
    return partitions.route([record(Change("a"), partition, offset) for offset in offsets])


def offsets(records: list[RoutedRecord]) -> list[int]:
    return [one.record.offset for one in records]


def test_a_partition_goes_on_from_the_position_in_the_store() -> None:
    partitions = assigned(0, 1)
    assert partitions.is_member
    records = read(partitions, 5, 6)
    assert partitions.unknown(records) == {0}
    partitions.set_stored({0: 5, 1: 9}, {0})
    assert offsets(partitions.writable(records)) == [5, 6]
    assert partitions.moves(records) == {0: Move(5, 7)}
    assert partitions.positions() == {}
    partitions.moved(records)
    assert partitions.positions() == {0: 7}
    following = read(partitions, 9)  # compaction has removed 7 and 8
    assert partitions.moves(partitions.writable(following)) == {0: Move(7, 10)}
    assert partitions.take_rewinds() == {}


def test_records_that_the_store_has_are_written_again() -> None:
    partitions = assigned(0)
    partitions.set_stored({0: 100}, {0})
    records = read(partitions, 5)
    assert partitions.moves(partitions.writable(records)) == {0: Move(100, 6)}


def test_a_store_without_these_records_gets_them_and_none_that_were_read_before_the_rewind() -> None:
    counted: list[Metric] = []
    partitions = assigned(0, 1, counted=counted)
    records = read(partitions, 5, 6)
    partitions.set_stored({}, {0})
    assert partitions.writable(records) == []
    assert read(partitions, 7) == []
    assert offsets(read(partitions, 7, partition=1)) == [7]
    assert partitions.take_rewinds() == {0: 0}
    again = read(partitions, 3)  # the topic has no earlier ones
    assert partitions.moves(partitions.writable(again)) == {0: Move(0, 4)}
    assert counted == [metrics.REWINDS]


def test_a_rewind_that_failed_is_repeated_unless_the_partition_is_gone() -> None:
    partitions = assigned(0, 1)
    partitions.repeat_rewinds({0: 3, 2: 4})
    assert read(partitions, 5) == []
    assert partitions.take_rewinds() == {0: 3}


def test_a_store_that_loses_writes_later_is_noticed_by_its_position() -> None:
    partitions = assigned(0)
    partitions.set_stored({0: 5}, {0})
    records = read(partitions, 5, 6)
    partitions.moved(partitions.writable(records))
    following = read(partitions, 7)
    partitions.set_stored({0: 6}, {0})  # as the store reported in a conflict
    assert partitions.writable(following) == []
    assert partitions.take_rewinds() == {0: 6}


def test_a_partition_without_records_is_compared_with_the_store_too() -> None:
    partitions = assigned(0, 1, 2)
    assert partitions.unread() == {0, 1, 2}
    assert partitions.required() == {}
    partitions.set_next_offsets({0: 5, 1: 7, 2: 0})
    assert partitions.required() == {0: 5, 1: 7, 2: 0}
    partitions.compare(partitions.required(), {0: 5, 1: 6})
    assert partitions.take_rewinds() == {1: 6}
    assert partitions.required() == {0: 5, 1: 6, 2: 0}


def test_a_write_since_the_comparison_began_is_no_loss() -> None:
    partitions = assigned(0)
    partitions.set_stored({0: 5}, {0})
    records = read(partitions, 5)
    required = partitions.required()
    partitions.moved(partitions.writable(records))
    partitions.compare(required, {0: 5})
    assert partitions.take_rewinds() == {}


def test_a_topic_that_was_created_again_moves_the_position_back() -> None:
    partitions = assigned(0)
    partitions.set_stored({0: 500}, {0})
    partitions.moved(partitions.writable(read(partitions, 500)))
    again = partitions.writable(read(partitions, 0))
    assert partitions.moves(again) == {0: Move(501, 1)}


async def test_revoked_and_lost_partitions_are_not_written() -> None:
    partitions = assigned(0, 1, 2)
    records = [one for number in (0, 1, 2) for one in read(partitions, 5, partition=number)]
    partitions.set_stored({0: 5, 1: 5, 2: 5}, {0, 1, 2})
    partitions.moved(records[:1])
    assert await partitions.on_revoked([0]) == {0: 6}
    partitions.on_lost([1])
    assert [one.record.partition for one in partitions.writable(records)] == [2]
    assert read(partitions, 6) == []
    partitions.on_assigned([0])
    assert partitions.positions() == {}
    assert [one.record.partition for one in partitions.writable(records)] == [2]
