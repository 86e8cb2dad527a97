"""The log of a partition: records, and the markers at the ends of transactions, each with an offset of its own."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

Headers = tuple[tuple[str, bytes | None], ...]


class Entry(NamedTuple):
    """A record, or the marker of a transaction. Its time is in milliseconds since 1970."""

    offset: int
    timestamp_ms: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    transaction: int | None = None
    is_marker: bool = False


class PartitionLog:
    """Offsets ascend, and are never reused: compaction leaves gaps, and the first offset moves."""

    def __init__(self) -> None:
        self.start = 0
        """The first offset."""
        self.end = 0
        """The offset of the next entry."""
        self.leaderless = 0
        """The number of reasons for which it has no leader, which would return records and offsets."""
        self._entries: list[Entry] = []
        self._open: dict[int, int] = {}
        """The first offsets of the transactions that have not ended."""
        self._aborted: set[int] = set()
        self._newest: Entry | None = None

    @property
    def stable_end(self) -> int:
        """The end for readers of committed records: the first record of an open transaction."""
        return max(self.start, min(self._open.values())) if self._open else self.end

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        transaction: int | None = None,
    ) -> int:
        """Append a record, and return its offset."""
        if transaction is not None:
            self._open.setdefault(transaction, self.end)
        return self._append(Entry(self.end, timestamp_ms, key, value, headers, transaction))

    def end_transaction(self, transaction: int, timestamp_ms: int, *, is_committed: bool) -> None:
        """Append the marker of a transaction."""
        self._append(Entry(self.end, timestamp_ms, transaction=transaction, is_marker=True))
        self._open.pop(transaction, None)
        if not is_committed:
            self._aborted.add(transaction)

    def read(self, position: int, limit: int) -> tuple[list[Entry], int]:
        """Return the next committed records from a position on, and the position behind them."""
        end = self.stable_end
        if position >= end:
            return [], position
        found: list[Entry] = []
        for entry in self._from(position):
            if len(found) == limit or entry.offset >= end:
                return found, min(entry.offset, max(position, end))
            if self._is_visible(entry):
                found.append(entry)
        return found, max(position, end)

    def entry(self, offset: int) -> Entry:
        """Return the entry at an offset."""
        return next(self._from(offset))

    def first_since(self, timestamp_ms: int) -> Entry | None:
        """Return the first entry of this time or a later one; it may be a marker, or of an aborted transaction."""
        return next((entry for entry in self._entries if entry.timestamp_ms >= timestamp_ms), None)

    def newest(self) -> Entry | None:
        """Return the first entry of the latest time; it may be a marker, deleted, or of an aborted transaction."""
        return self._newest

    def delete_before(self, offset: int) -> None:
        """Move the first offset."""
        self.start = max(self.start, offset)
        self._entries = list(self._from(self.start))

    def expire(self, before_ms: int) -> None:
        """Delete the entries that are older, up to the first one that is not."""
        first = next((entry.offset for entry in self._entries if entry.timestamp_ms >= before_ms), self.end)
        self.delete_before(min(first, self.stable_end))
        self._newest = max(self._entries, key=attrgetter("timestamp_ms"), default=None)

    def compact(self, end: int, before_ms: int) -> None:
        """Remove what a later record before `end` replaces, aborted records, and older tombstones and markers."""
        end = min(end, self.stable_end)
        latest = {one.key: one.offset for one in self._entries if one.offset < end and self._is_visible(one)}

        def is_kept(entry: Entry) -> bool:
            is_old = entry.timestamp_ms < before_ms
            if entry.offset >= end:
                return True
            if entry.is_marker:
                return not is_old
            is_latest = self._is_visible(entry) and latest[entry.key] == entry.offset
            return is_latest and not (entry.value is None and is_old)

        self._entries = [one for one in self._entries if is_kept(one)]

    def _append(self, entry: Entry) -> int:
        self._entries.append(entry)
        self.end += 1
        if self._newest is None or entry.timestamp_ms > self._newest.timestamp_ms:
            self._newest = entry
        return entry.offset

    def _from(self, position: int) -> Iterator[Entry]:
        first = bisect_left(self._entries, position, key=attrgetter("offset"))
        return (self._entries[index] for index in range(first, len(self._entries)))

    def _is_visible(self, entry: Entry) -> bool:
        return not entry.is_marker and entry.transaction not in self._aborted
