"""The interface of a store: ingest writes to it, lookups read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from services.query.store.entry import Change, Entry
    from services.query.store.scan import Page, Scan


class Update(NamedTuple):
    """One decoded record of a topic: the key's new entry, or None for a tombstone.

    `window_start` is that of the window that a tombstone deletes; None deletes the key whatever its window is.
    """

    key: str
    partition: int
    offset: int
    entry: Entry | None
    window_start: int | None = None


class Store(Protocol):
    """The entries of one named state, of all partitions that this instance ever read.

    One thread writes. Reads run on the event loop, see whole batches, and never wait for the writer.
    """

    def get(self, key: str) -> Entry | None:
        """Return the latest entry of a key, also of an expired window that is still remembered."""

    def get_many(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        """Return the latest entries of many keys from one snapshot, in the order of the keys."""

    def versions(self, key: str) -> Sequence[Entry]:
        """Return all stored entries of the key's current window from one snapshot, oldest first."""

    def scan(self, scan: Scan) -> Page:
        """Return the next keys. Scans of silent keys are for states that declare `silence`."""

    def key_count(self) -> int:
        """Return the approximate number of stored keys, with remembered expired windows; cheap."""

    def watermark(self) -> int:
        """Return the watermark in milliseconds since 1970; 0 without windows. It never goes down.

        It is the largest window start that a record, the clock or another instance has set.
        """

    def advance_watermark(self, watermark: int) -> None:
        """Raise the watermark to at least this value, which the clock or another instance gives."""

    def is_expired(self, entry: Entry) -> bool:
        """Return whether the entry's window has expired by the watermark."""

    def oldest_live_window(self) -> int:
        """Return the start of the oldest window that has not expired by the watermark."""

    def position(self, partition: int) -> int | None:
        """Return the offset of the first record not yet applied; None if the partition was never read."""

    def caught_up_at(self, partition: int) -> int | None:
        """Return when the store last had all records of the partition, in milliseconds since 1970; None: unknown."""

    def mark_caught_up(self, times: Mapping[int, int]) -> None:
        """Record that the store had all records of these partitions at these times, or starts to read them again."""

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        """Write what is newer and the partitions' positions in one transaction; return what changed for readers.

        Drops the time buckets that have expired and are no longer remembered.
        """

    def drop_expired(self) -> None:
        """Write the watermarks and drop time buckets that are no longer remembered, although no record arrives.

        Runs in the thread that writes.
        """

    def clear_partition(self, partition: int) -> bool:
        """Delete some thousand entries of a partition that has to be read again; return whether none is left.

        The first call deletes the partition's position. The partition must not be read before all entries are gone.
        """

    def is_clear_pending(self, partition: int) -> bool:
        """Return whether the partition was cleared in part, perhaps by an earlier process."""

    def finish_bulk_load(self) -> None:
        """Switch from fast loading to fast reading after a rebuild. Blocks the event loop for about 50 ms."""

    def close(self) -> None:
        """Make everything durable, and close."""


class WindowStore(Store, Protocol):
    """A store of a windowed state: `Store` reads the newest window of each key, and these methods all of them.

    A window that is not remembered any more is not returned, by any method. Times are in milliseconds since 1970.
    """

    def is_open(self, window_start: int) -> bool:
        """Return whether a later version of the window may come."""

    def closed_before(self) -> int:
        """Return the start of the first window of which a later version may come: all before it are closed.

        In a replay the watermark closes windows, in other states only `close_windows`: neither the clock nor a
        record shows that all records of a window are read.
        """

    def close_windows(self, watermark: int) -> None:
        """Close the windows that have ended by this watermark. `apply` and `drop_expired` write it."""

    def get_at(self, key: str, time: int) -> Entry | None:
        """Return the latest entry of the newest of the key's windows that contains this time."""

    def get_many_at(self, keys: Sequence[str], time: int) -> Sequence[Entry | None]:
        """Return the same of many keys from one snapshot, in the order of the keys."""

    def versions_at(self, key: str, time: int) -> Sequence[Entry]:
        """Return all stored entries of the newest of the key's windows that contains this time, oldest first."""

    def windows(
        self, key: str, *, start: int | None, end: int | None, newest_first: bool, limit: int
    ) -> Sequence[Entry]:
        """Return the latest entry of each window of the key that starts in [start, end), at most `limit` of them."""
