"""Computes the offset of a partition that may be committed: the end of the contiguous prefix of finished offsets."""

from __future__ import annotations

from collections import OrderedDict


class Offsets:
    """The offsets of one partition during one assignment.

    It stores only unfinished offsets, in the order in which they were read. Every operation is O(1), and a million
    finished offsets behind one slow request take no memory. Offsets need not be consecutive: compaction leaves gaps.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[int, int] = OrderedDict()
        self._next: int | None = None

    def track(self, offset: int, parts: int) -> None:
        """Add an offset that was read, with the number of parts that must finish; with 0 it is finished.

        Raises ValueError if the offset is not beyond all earlier ones.
        """
        if self.is_behind(offset):
            raise ValueError(f"offset {offset} was tracked before: a partition that went back needs a new state")
        self._next = offset + 1
        if parts:
            self._parts[offset] = parts

    def finish(self, offset: int) -> bool:
        """Finish one part of an offset; return whether it was the last part."""
        left = self._parts[offset] - 1
        if left:
            self._parts[offset] = left
        else:
            del self._parts[offset]
        return not left

    def add_parts(self, offset: int, count: int) -> bool:
        """Add parts to an unfinished offset, or remove some; return whether the offset is finished by that."""
        self._parts[offset] += count
        if not self._parts[offset]:
            del self._parts[offset]
        return offset not in self._parts

    def is_behind(self, offset: int) -> bool:
        """Return whether an offset is not beyond all earlier ones: the topic was recreated, or the offset reset."""
        return self._next is not None and offset < self._next

    @property
    def position(self) -> int | None:
        """The offset to commit: everything before it is finished. None before the first offset."""
        return next(iter(self._parts), self._next)

    @property
    def span(self) -> int:
        """The number of offsets between the position and the largest one that was read."""
        return 0 if self._next is None else self._next - next(iter(self._parts), self._next)
