"""The partitions that are read, the position of each, and how one is read again from its beginning.

Runs in the ingest thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from services.query.ingest.ingestion import ReadProgress
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from services.query.ingest.freshness import FreshnessTracker
    from services.query.store import StatePartition, Store
    from services.runtime.kafka.assignment_interfaces import PartitionReader

log = logging.getLogger(__name__)

NEARLY_CAUGHT_UP = 10_000


class PartitionAssignment:
    """The assigned partitions. `topics` and `stores` are by state.

    The consumer's own assignment can be made again from this and the stores.
    """

    def __init__(
        self,
        reader: PartitionReader,
        topics: Mapping[str, str],
        stores: Mapping[str, Store],
        freshness: FreshnessTracker,
    ) -> None:
        self._reader = reader
        self._freshness = freshness
        self._topics = topics
        self._stores = stores
        self._partitions: set[StatePartition] = set()
        self._clearing: list[StatePartition] = []
        self.progress: dict[StatePartition, ReadProgress] = {}

    def __contains__(self, partition: StatePartition) -> bool:
        return partition in self._partitions

    @property
    def is_clearing(self) -> bool:
        """Whether a partition has entries that must be deleted before it is read."""
        return bool(self._clearing)

    def add(self, partition: StatePartition) -> None:
        """Read the partition from its store's position, after clearing what an earlier process cleared in part."""
        if partition in self._partitions:
            return
        self._partitions.add(partition)
        if self._stores[partition.state].is_clear_pending(partition.number):
            self._clearing.append(partition)
        else:
            self._read(partition)

    def remove(self, partition: StatePartition) -> None:
        """Stop reading the partition."""
        if partition not in self._partitions:
            return
        self._partitions.remove(partition)
        self.progress.pop(partition, None)
        if partition in self._clearing:
            self._clearing.remove(partition)
        else:
            self._reader.remove(self._place(partition))

    def restart(self, partition: StatePartition, reason: str, notify: Callable[[], bool]) -> None:
        """Clear the partition and read it from its beginning, unless `notify` fails: readers must know first."""
        if partition in self._clearing:
            return
        facts = {"state": partition.state, "partition": partition.number, "reason": reason}
        log.warning("a partition is read from its beginning", extra={"facts": facts})
        self.progress.pop(partition, None)  # or it would be taken for that of the new beginning
        if notify():
            self._stores[partition.state].begin_clear(partition.number)
            self._clearing.append(partition)
            self._reader.remove(self._place(partition))

    def clear_some(self) -> None:
        """Delete some entries of a partition that is being cleared; other partitions are read in between."""
        if self._clearing:
            partition = self._clearing[0]
            if self._stores[partition.state].clear_partition(partition.number):
                self._clearing.remove(partition)
                self._read(partition)

    def may_miss_tombstone(self, partition: StatePartition, offsets: Iterable[int]) -> bool:
        """Return whether compaction can have removed a tombstone before these offsets, which are read next."""
        if partition not in self._partitions or partition in self._clearing:
            return False
        return self._freshness.may_miss_tombstone(partition, self.position(partition), offsets)

    def set_end_offsets(self, end_offsets: Mapping[StatePartition, int], at: int) -> None:
        """Note the partitions' end offsets at that time."""
        known = {partition: end for partition, end in end_offsets.items() if partition in self.progress}
        self._freshness.set_end_offsets(known, at, {one: self.progress[one].position for one in known})

    def rewind(self) -> None:
        """Read all partitions from their stores' positions: records that were read and not written are read again."""
        partitions = [partition for partition in sorted(self._partitions) if partition not in self._clearing]
        self._reader.replace({self._place(partition): self.position(partition) for partition in partitions})

    def is_almost_caught_up(self, state: str) -> bool:
        """Return whether each assigned partition of the state lacks fewer than NEARLY_CAUGHT_UP records."""
        known = [self.progress.get(partition) for partition in self._partitions if partition.state == state]
        return bool(known) and all(one and one.end is not None and one.lag < NEARLY_CAUGHT_UP for one in known)

    def reached(self, partition: StatePartition, position: int) -> None:
        """Note that readers see all records before this position."""
        if partition not in self._partitions or partition in self._clearing:
            return
        before = self.progress.get(partition)
        end = self._reader.known_end(self._place(partition))
        position = max(position, before.position if before else 0)
        self.progress[partition] = ReadProgress(position, max(position, end or 0))
        self._freshness.reached({partition: position})

    def _read(self, partition: StatePartition) -> None:
        position = self.position(partition)
        if position is not None:
            self.progress[partition] = ReadProgress(position, None)
        self._freshness.start(partition, position)
        self._reader.add(self._place(partition), position)

    def _place(self, partition: StatePartition) -> Partition:
        return Partition(self._topics[partition.state], partition.number)

    def position(self, partition: StatePartition) -> int | None:
        """Return the position of the store; None if it has nothing of the partition."""
        return self._stores[partition.state].position(partition.number)
