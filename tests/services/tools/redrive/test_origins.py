"""Single records, read where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from services.runtime.kafka.interfaces import BoundedRange, Partition
from services.tools.redrive.origins import Origins
from tests.services.tools.redrive.in_memory import kept

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contracts.records.record import Record


class Reader:
    """A topic that has offsets 3 and 5 of 3 to 7. Implements a part of BlockingTopicReader."""

    def __init__(self) -> None:
        self.requested: list[int] = []

    def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, BoundedRange]:
        return dict.fromkeys(partitions, BoundedRange(3, 8))

    def at(self, partition: Partition, offsets: Sequence[int]) -> Sequence[Record]:
        self.requested += offsets
        return [kept(partition.topic, one) for one in offsets if one in (3, 5)]


@pytest.mark.parametrize(("offset", "is_kept"), [(2, False), (3, True), (4, False), (5, True), (7, False), (8, False)])
def test_a_record_that_was_deleted_or_compacted_is_none(offset: int, *, is_kept: bool) -> None:
    reader: Any = Reader()
    assert Origins(reader).record("events", 0, offset) == (kept("events", offset) if is_kept else None)
    assert reader.requested == ([offset] if 3 <= offset < 8 else []), "outside, nothing is waited for"
