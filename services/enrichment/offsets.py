"""Which offset of a partition may be committed: the end of the contiguous prefix of finished work."""

from __future__ import annotations

from collections import OrderedDict


class Offsets:
    """The offsets of one partition during one assignment.

    Only unfinished offsets are held, in the order in which they were read, so every operation is O(1) and a million
    completions behind one slow request cost nothing. Offsets need not be consecutive (compaction leaves gaps).
    """

    def __init__(self) -> None:
        self._pieces: OrderedDict[int, int] = OrderedDict()
        self._next: int | None = None

    def take(self, offset: int, pieces: int) -> None:
        """Note that an offset was read, and in how many pieces its work will finish: with 0 it is finished now.

        Raises ValueError when the offset is not beyond all that were taken.
        """
        if self.is_behind(offset):
            raise ValueError(f"offset {offset} was taken before: a partition that goes back begins anew")
        self._next = offset + 1
        if pieces:
            self._pieces[offset] = pieces

    def finish(self, offset: int) -> bool:
        """Note that one piece of an offset's work is finished, and say whether it was the last."""
        left = self._pieces[offset] - 1
        if left:
            self._pieces[offset] = left
        else:
            del self._pieces[offset]
        return not left

    def divide_anew(self, offset: int, more: int) -> bool:
        """Note that an unfinished offset has so many more pieces, or fewer, and say whether it is finished by that."""
        self._pieces[offset] += more
        if not self._pieces[offset]:
            del self._pieces[offset]
        return offset not in self._pieces

    def is_behind(self, offset: int) -> bool:
        """Whether an offset is not beyond all that were taken: the topic was made anew, or the position was reset."""
        return self._next is not None and offset < self._next

    @property
    def position(self) -> int | None:
        """What to commit: all before it is finished. None before the first offset."""
        return next(iter(self._pieces), self._next)

    @property
    def span(self) -> int:
        """How many offsets lie between the position and the largest one read."""
        return 0 if self._next is None else self._next - next(iter(self._pieces), self._next)
