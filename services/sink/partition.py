"""The progress of one assigned partition of a sink: how far the store has its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.sinks import Move

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from contracts.records.record import Record
    from services.runtime.worker.partition import AssignedPartition


class SinkPartition:
    """One assignment of a partition.

    The store has a position of each partition, which moves with the rows. If it is before the first record that was
    read, the store has lost writes, or is a new one: the partition is read again from there.
    """

    def __init__(self, partition: AssignedPartition) -> None:
        self.partition = partition
        self.stored = partition.start
        """The position in the store, that from which it was reopened at first; None as long as it is unknown."""
        self.is_taken_over = False
        """Whether the position is known, and the group has committed the offset from which the partition is read."""
        self._position_of_conflict = 0
        """The position in the store at the last conflict or takeover: the store has had all records before it."""

    @property
    def required(self) -> int | None:
        """The position that the store must have reached; None as long as that is unknown."""
        return self.partition.first if self.stored is None else self.stored

    def lacks_records(self) -> bool:
        """Return whether the store lacks records before those that are read."""
        first = self.partition.first
        return self.stored is not None and first is not None and self.stored < first

    def note_conflict(self, position: int) -> None:
        """Note the position that another sink, or an earlier attempt without an answer, may have given the partition.

        A conflict of another partition has the same position as before, also that of a topic before this one.
        """
        if position != self.stored:
            self.stored = self._position_of_conflict = position

    def unwritten(self, records: Sequence[Record]) -> list[Record]:
        """Return the records that the store lacked at that position. The others must not move it back."""
        return [record for record in records if not self.has(record)]

    def has(self, record: Record) -> bool:
        """Return whether the store had the record at the last conflict or takeover."""
        return record.offset < self._position_of_conflict

    def move(self, last: Record) -> Move:
        """Return the move of the position that writing the records up to this one makes."""
        return Move(self.stored or 0, last.offset + 1)

    def written(self, last: Record) -> None:
        """Note that the records up to this one are written."""
        self.stored = last.offset + 1
        self.skip(last)

    def skip(self, last: Record) -> None:
        """Note that the store has the records up to this one, and maybe later ones."""
        self.partition.first = last.offset + 1
        self.partition.track(last.offset, 0)


class WaitingRecords(NamedTuple):
    """Records of a partition that wait to be written, and the future that their write settles."""

    state: SinkPartition
    records: tuple[Record, ...]
    written: asyncio.Future[None]
