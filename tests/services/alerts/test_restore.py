"""The records of partitions are read while a broker comes and goes."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest

from contracts.records.record import Record
from contracts.wire import Snapshot
from contracts.wire.alert_record import Alert, AlertRecord
from contracts.wire.window_key import window_key
from services.alerts.present_states import position_of
from services.alerts.restore import restored, stored
from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import BoundedRange, Partition
from tests.services.derive.alerted import sensors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from services.runtime.kafka.interfaces import BlockingTopicReader
    from services.runtime.kafka.values import OffsetRange

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLACE = Partition("snapshots", 0)
AWAY = TopicReadError("snapshots", "_TRANSPORT", "no broker")
REFUSED = TopicReadError("snapshots", "TOPIC_AUTHORIZATION_FAILED", "not yours")


class Reader:
    """A partition with the offsets from `start` to before `end`. The first requests for its bounds have errors."""

    def __init__(self, *errors: TopicReadError, start: int = 2, end: int = 6) -> None:
        self.errors = deque(errors)
        self.bound = BoundedRange(start, end)
        self.is_stopping = False

    def bounds(self, partitions: Collection[Partition], within_s: float) -> Mapping[Partition, BoundedRange]:
        assert within_s
        if self.errors:
            self.is_stopping = len(self.errors) == 1 and self.errors[0] is not AWAY
            raise self.errors.popleft()
        return dict.fromkeys(partitions, self.bound)

    def read(self, ranges: Mapping[Partition, OffsetRange], is_stopping: Callable[[], bool]) -> Iterator[list[Record]]:
        for partition, (start, end) in ranges.items():
            assert end is not None
            assert not is_stopping()
            yield [Record(*partition, offset, 0, b"", b"") for offset in range(start, end)]

    def offsets(self, **limits: int) -> list[int]:
        batches = stored(cast("BlockingTopicReader", self), [PLACE], lambda: self.is_stopping, **limits)
        return [record.offset for records in batches for record in records]


@pytest.mark.parametrize(("before", "found"), [(2, []), (4, [2, 3]), (6, [2, 3, 4, 5]), (9, [2, 3, 4, 5])])
def test_a_partition_is_read_up_to_an_offset_or_to_its_end(before: int, found: list[int]) -> None:
    """A committed offset may be behind the end: the partition has lost records."""
    assert Reader().offsets(before=before) == found


def test_a_broker_that_is_away_is_waited_for() -> None:
    assert Reader(*[AWAY] * 50).offsets() == [2, 3, 4, 5]


def test_a_reader_that_is_to_stop_does_not_wait_for_the_broker() -> None:
    stopping = TopicReadError("snapshots", "_TIMED_OUT", "no broker")
    assert Reader(AWAY, stopping).offsets() == []


def test_a_topic_that_may_not_be_read_is_an_error() -> None:
    with pytest.raises(TopicReadError, match="not yours"):
        Reader(AWAY, REFUSED).offsets()


class Topics:
    """Topics of one partition, with these records."""

    def __init__(self, **values: list[tuple[bytes, bytes | None]]) -> None:
        self._records = {
            topic: [Record(topic, 0, offset, 0, key, value) for offset, (key, value) in enumerate(written)]
            for topic, written in values.items()
        }

    def bounds(self, partitions: Collection[Partition], within_s: float) -> Mapping[Partition, BoundedRange]:
        assert within_s
        return {place: BoundedRange(0, len(self._records[place.topic])) for place in partitions}

    def read(self, ranges: Mapping[Partition, OffsetRange], is_stopping: Callable[[], bool]) -> Iterator[list[Record]]:
        assert not is_stopping()
        for place, (start, end) in ranges.items():
            yield self._records[place.topic][start:end]

    def stop(self) -> None:
        """There is nothing to stop."""


def snapshot(device: str) -> tuple[bytes, bytes]:
    found = Snapshot(device_id=device, first_seen=NOON, version=1, as_of=NOON, state={"value": 7})
    return window_key(device, NOON), found.encode()


def alerted(device: str) -> tuple[bytes, bytes]:
    alert = Alert(id=device, rule="r", rule_version=1, status="pending", since=NOON)
    found = AlertRecord(
        device_id=device, first_seen=NOON, version=1, as_of=NOON, offset=1, status="pending", alerts=(alert,)
    )
    return window_key(device, NOON), found.encode()


def test_a_window_that_a_tombstone_removed_is_not_restored() -> None:
    """Its alert would open again, and what is derived of it would be written again."""
    key, _ = alerted("a")
    application = sensors("")
    (alerts,) = application.alerts
    written = {
        application.topics.snapshots: [snapshot("a"), snapshot("b"), (key, None), (b"no window", None)],
        application.topics.derived(alerts.name): [alerted("a"), alerted("b"), (key, None), (b"no window", None)],
    }
    reader = cast("BlockingTopicReader", Topics(**written))
    found = restored(application, reader, 0, 4, lambda: False)
    removed, left = position_of(("a", NOON)), [position_of(("b", NOON))]
    assert [one for one in (removed, *left) if found.states.order(one)] == left
    assert [list(found.records[alerts.name]), list(found.pending[alerts.name])] == [left, left]
    found.states.close()
