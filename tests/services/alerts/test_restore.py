"""The records of partitions are read while a broker comes and goes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

import pytest

from contracts.records.record import Record
from services.alerts.restore import stored
from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import BoundedRange, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from services.runtime.kafka.interfaces import BlockingTopicReader
    from services.runtime.kafka.values import OffsetRange

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
