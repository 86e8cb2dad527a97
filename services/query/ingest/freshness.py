"""Tracks when the store last had all records of each partition. Runs in the ingest thread."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from services.query.ingest.tombstones import TombstoneRetention
    from services.query.store import StatePartition, Store


class EndOffset(NamedTuple):
    """A partition's end offset, and the time at which it was requested."""

    offset: int
    at: int


class FreshnessTracker:
    """Writes these times to the stores, and detects partitions that were not read for longer than tombstones are kept.

    A partition that is read from its beginning is not checked before it has reached its end: a topic that keeps
    tombstones for less time than reading it takes would otherwise be read again and again.
    """

    def __init__(self, stores: Mapping[str, Store], retention: TombstoneRetention) -> None:
        self._stores = stores
        self._retention = retention
        self._checked: set[StatePartition] = set()
        self._end_offsets: dict[StatePartition, EndOffset] = {}

    def start(self, partition: StatePartition, position: int | None) -> None:
        """Note that the partition is read from this position; None: from its beginning."""
        self._end_offsets.pop(partition, None)
        if position is None:
            self._checked.discard(partition)
            self._stores[partition.state].mark_caught_up({partition.number: self._retention.now()})
        else:
            self._checked.add(partition)

    def set_end_offsets(
        self, end_offsets: Mapping[StatePartition, int], at: int, positions: Mapping[StatePartition, int]
    ) -> None:
        """Note the end offsets at that time; an earlier one that is not reached yet stays."""
        for partition, end_offset in end_offsets.items():
            self._end_offsets.setdefault(partition, EndOffset(end_offset, at))
        self.reached(positions)

    def reached(self, positions: Mapping[StatePartition, int]) -> None:
        """Note that readers see all records before these positions."""
        caught_up: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for partition, position in positions.items():
            end = self._end_offsets.get(partition)
            if end is not None and position >= end.offset:
                del self._end_offsets[partition]
                self._checked.add(partition)
                caught_up[partition.state][partition.number] = end.at
        for state, times in caught_up.items():
            self._stores[state].mark_caught_up(times)

    def may_miss_tombstone(self, partition: StatePartition, position: int | None, offsets: Iterable[int]) -> bool:
        """Return whether compaction can have removed a tombstone at the position, or between these next offsets.

        Compaction leaves a gap in the offsets where it removed a record. So without a gap nothing is missing, whatever
        the clock shows: a clock that jumps ahead would otherwise make every instance read everything again.
        """
        caught_up_at = self._stores[partition.state].caught_up_at(partition.number)
        if partition not in self._checked or not self._retention.is_exceeded(partition.state, caught_up_at):
            return False
        return caught_up_at is None or has_gap(position, offsets)


def has_gap(position: int | None, offsets: Iterable[int]) -> bool:
    """Return whether offsets are missing between the position and the last of these, which are in order."""
    for offset in offsets:
        if position is not None and offset > position:
            return True
        position = offset + 1
    return False
