"""The progress of a sink's partitions: the positions up to which they are read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics import sink as metrics
from contracts.sinks import Move

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from contracts.metrics import Metric
    from contracts.records.record import Record


class PartitionProgress:
    """One assignment of a partition, up to the next rewind."""

    __slots__ = ("is_closed", "read_from", "stored", "written")

    def __init__(self, position: int | None = None) -> None:
        self.stored = position
        """The position in the store; None as long as it is unknown."""
        self.read_from = position
        """The offset from which on no record is missing; None before the first record."""
        self.written: int | None = None
        """The position to commit; None before the first write."""
        self.is_closed = False


class RoutedRecord(NamedTuple):
    """A record, and the progress that it counts for."""

    progress: PartitionProgress
    record: Record


class SinkPartitions:
    """The assigned partitions. Implements `source.RebalanceListener`.

    The store has a position of each partition, which moves with the rows. If it is before the first record that was
    read, the store has lost writes, or is a new one: the partition is read again from there.
    """

    def __init__(self, count: Callable[[Metric], object]) -> None:
        self._count = count
        self._progress: dict[int, PartitionProgress] = {}
        self._rewinds: dict[int, int] = {}
        self.is_member = False
        """Whether the group has assigned partitions to this sink, possibly none."""

    # RebalanceListener

    def on_assigned(self, partitions: list[int]) -> None:
        """Start anew with these partitions."""
        self.is_member = True
        self.on_lost(partitions)
        self._progress.update({partition: PartitionProgress() for partition in partitions})

    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        """Return the positions to commit. A batch that is being written is read again by the next owner."""
        positions = {partition: at for partition, at in self.positions().items() if partition in partitions}
        self.on_lost(partitions)
        return positions

    def on_lost(self, partitions: list[int]) -> None:
        """Forget these partitions."""
        for partition in partitions:
            self._rewinds.pop(partition, None)
            if progress := self._progress.pop(partition, None):
                progress.is_closed = True

    def on_committed(self, positions: dict[int, int]) -> None:
        """Count the commit."""
        if positions:
            self._count(metrics.COMMITS)

    def on_error(self) -> None:
        """Count the error; the log has its text."""
        self._count(metrics.KAFKA_ERRORS)

    # Reading

    def route(self, records: Iterable[Record]) -> list[RoutedRecord]:
        """Return the records of assigned partitions, without those that were read before a rewind."""
        return [
            RoutedRecord(progress, record)
            for record in records
            if record.partition not in self._rewinds and (progress := self._progress.get(record.partition))
        ]

    def take_rewinds(self) -> dict[int, int]:
        """Return the positions from which to read partitions again. Records that come from now on are of these."""
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def repeat_rewinds(self, positions: Mapping[int, int]) -> None:
        """Rewind these later: the consumer could not."""
        self._rewinds |= {partition: at for partition, at in positions.items() if partition in self._progress}

    def positions(self) -> dict[int, int]:
        """Return the positions to commit."""
        return {number: one.written for number, one in self._progress.items() if one.written is not None}

    # Writing

    def unknown(self, records: Iterable[RoutedRecord]) -> set[int]:
        """Return the partitions of these records whose position in the store is unknown."""
        return {one.record.partition for one in records if one.progress.stored is None}

    def set_stored(self, positions: Mapping[int, int], partitions: Collection[int]) -> None:
        """Note the positions that the store has, 0 for a partition that is not among them."""
        for partition in partitions:
            if progress := self._progress.get(partition):
                progress.stored = positions.get(partition, 0)

    def writable(self, records: Iterable[RoutedRecord]) -> list[RoutedRecord]:
        """Return the records that can be written; rewind partitions of which the store lacks earlier records."""
        for progress, record in records:
            if progress.read_from is None:
                progress.read_from = record.offset
            if not progress.is_closed and progress.stored is not None and progress.stored < progress.read_from:
                self._rewind(record.partition, progress)
        return [one for one in records if not one.progress.is_closed]

    def unread(self) -> set[int]:
        """Return the partitions of which no record has been read."""
        return {number for number, one in self._progress.items() if one.read_from is None}

    def set_next_offsets(self, offsets: Mapping[int, int]) -> None:
        """Note from where unread partitions are read on."""
        for number, offset in offsets.items():
            if (progress := self._progress.get(number)) and progress.read_from is None:
                progress.read_from = offset

    def required(self) -> dict[int, int]:
        """Return the position that the store must have reached of each partition, as far as that is known."""
        positions = {
            number: one.read_from if one.stored is None else one.stored for number, one in self._progress.items()
        }
        return {number: position for number, position in positions.items() if position is not None}

    def compare(self, required: Mapping[int, int], stored: Mapping[int, int]) -> None:
        """Rewind partitions whose position in the store is before the required one."""
        for number, position in required.items():
            progress = self._progress.get(number)
            if progress is not None and stored.get(number, 0) < position:
                progress.stored = stored.get(number, 0)
                self._rewind(number, progress)

    def moves(self, records: Iterable[RoutedRecord]) -> dict[int, Move]:
        """Return the moves of the positions that writing these records makes."""
        return {record.partition: Move(progress.stored or 0, record.offset + 1) for progress, record in records}

    def moved(self, records: Iterable[RoutedRecord]) -> None:
        """Note that these records are written."""
        for progress, record in records:
            progress.stored = progress.read_from = progress.written = record.offset + 1

    def _rewind(self, partition: int, progress: PartitionProgress) -> None:
        progress.is_closed = True
        self._progress[partition] = PartitionProgress(progress.stored)
        self._rewinds[partition] = progress.stored or 0
        self._count(metrics.REWINDS)
