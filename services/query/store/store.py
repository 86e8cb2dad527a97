"""The store of a named state, in LMDB."""

from __future__ import annotations

from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from services.query.store.buckets import SLOTS, milliseconds, time_buckets
from services.query.store.environment import Databases
from services.query.store.errors import NoSilenceError, NotIndexedError
from services.query.store.folder import StoreFolder
from services.query.store.history import History
from services.query.store.index import TermIndex
from services.query.store.keys import ALL_STARTS, END_START, FIRST_START, KeyNames, WindowNames
from services.query.store.packing import unpack
from services.query.store.scan import StoreView
from services.query.store.store_metadata import StoreMetadata
from services.query.store.write_batch import SPACE_CHECK_SIZE, WriteBatch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from lmdb import Transaction

    from contracts.model.named_state import NamedState
    from services.query.store.buckets import TimeBuckets
    from services.query.store.entry import Change, Entry, EntryOrder, Update
    from services.query.store.environment import Slot
    from services.query.store.scan import Page, Scan

BULK_SIZE = 1000
"""A batch of at least so many updates is written in key order: neighbours are on one page of the file."""
WATERMARK_SAVE_MS = 10_000
"""A watermark that no record advances is written when it is this far ahead of the one written last."""
KEY = itemgetter(0)
BEGINNING, END = (0, b""), (SLOTS, b"")
"""Positions of a clear: a slot, and a key in it."""
NO_BUCKET = -(1 << 63)
"""Less than every bucket."""


class Store:
    """The entries of one named state, of all partitions that this instance ever read.

    A windowed state has an entry of each window of a key, and other states one of the last window. Times are in
    milliseconds since 1970. `boot` identifies the start of the machine. Raises StoreError.

    One thread writes. Reads run on the event loop, see whole batches, and never wait for the writer.
    """

    def __init__(self, folder: Path, state: NamedState, boot: str) -> None:
        self._state = state
        self._buckets = time_buckets(state)
        self._paths = state.query.indexes
        windowed, silence, history = state.window is not None, state.query.silence, state.query.history
        self._every = self._buckets.window if state.every is None else milliseconds(state.every)
        self._names = WindowNames() if windowed else KeyNames()
        self._index = TermIndex(self._paths, windowed=windowed, times=silence)
        self._history = History(history - 1)
        self._folder = StoreFolder(folder, _shape(state, self._buckets), boot, state.partitions)
        try:
            self._databases = Databases(folder, len(self._paths) + silence + windowed, history=history > 1)
        except BaseException:
            self._folder.release()
            raise
        self._bind()
        with self._begin() as txn:
            former, former_complete = self._folder.watermarks
            self._written_watermark = self._metadata.watermark(txn)
            self._announced_watermark = max(self._written_watermark, former)
            self._written_complete = self._metadata.complete_watermark(txn)
            self._complete = max(self._written_complete, former_complete)
            self._positions = self._metadata.positions(txn)
            self._buckets_by_slot = self._metadata.buckets(txn)
            self._caught_up_at = self._metadata.caught_up_at(txn)
            self._clearing = dict.fromkeys(self._metadata.clearing(txn), BEGINNING)
        self._newest_first = self._ordered()

    def get(self, key: str, time: int | None = None) -> Entry | None:
        """Return the latest entry of the newest window of a key; with `time`, of those that contain it.

        In a state that is not windowed, also of an expired window that is still remembered.
        """
        (first, end), name = self._starts(time), self._names.encode(key)
        if name is None:
            return None
        slots, txn = self._newest_first, self._begin()
        try:
            found = self._names.newest(txn, slots, name, first, end)
        finally:
            txn.abort()
        return None if found is None else unpack(found.data, self._index.columns_count)

    def get_many(self, keys: Sequence[str], time: int | None = None) -> list[Entry | None]:
        """Return the same of many keys from one snapshot, in the order of the keys."""
        (first, end), columns = self._starts(time), self._index.columns_count
        slots, txn = self._newest_first, self._begin()
        try:
            found = self._names.newest_of_many(txn, slots, keys, first, end)
        finally:
            txn.abort()
        return [None if data is None else unpack(data, columns) for data in found]

    def versions(self, key: str, time: int | None = None) -> list[Entry]:
        """Return all stored entries of that window from one snapshot, oldest first."""
        (first, end), name, slots = self._starts(time), self._names.encode(key), self._newest_first
        with self._begin() as txn:
            found = None if name is None else self._names.newest(txn, slots, name, first, end)
            if found is None:
                return []
            stored = [*self._history.all(txn, found.slot.history, found.name), found.data]
        return [unpack(data, self._index.columns_count) for data in stored]

    def earlier_versions(self, key: str, order: EntryOrder, size: int) -> list[Entry]:
        """Return the entries before the present one, from this order on, until they have `size` bytes, oldest first."""
        (first, end), name, slots = self._starts(None), self._names.encode(key), self._newest_first
        with self._begin() as txn:
            found = None if name is None else self._names.newest(txn, slots, name, first, end)
            if found is None:
                return []
            stored = self._history.since(txn, found.slot.history, found.name, order, size)
        return [unpack(data, self._index.columns_count) for data in stored]

    def windows(self, key: str, *, start: int | None, end: int | None, newest_first: bool, limit: int) -> list[Entry]:
        """Return the latest entry of each unexpired window of a key that starts in [start, end), at most `limit`."""
        first = max(self.oldest_live_window(), FIRST_START if start is None else start)
        name, bound = self._names.encode(key), END_START if end is None else end
        if name is None or first >= bound:
            return []
        with self._begin() as txn:
            slots = self._live_slots(txn)
            found = chain.from_iterable(
                self._names.windows(txn, slot, name, first, bound, newest_first=newest_first)
                for slot in (slots if newest_first else reversed(slots))
            )
            return [unpack(window.data, self._index.columns_count) for window in islice(found, limit)]

    def scan(self, scan: Scan) -> Page:
        """Return the next keys. Scans of silent keys are for states that declare `silence`."""
        self._check_indexed((*scan.where, *filter(None, [scan.order_by])))
        if scan.silent is not None and not self._index.has_times:
            raise NoSilenceError(self._state.name)
        oldest = self.oldest_live_window()
        with self._begin() as txn:
            slots = self._live_slots(txn)
            view = StoreView(txn, slots, self._names, self._index, self._paths, oldest, self._every)
            return view.read(scan)

    def key_count(self) -> int:
        """Return the approximate number of stored keys, with remembered expired windows; cheap."""
        with self._begin() as txn:
            return sum(txn.stat(slot.entries)["entries"] for slot in self._newest_first)

    def free_bytes(self) -> int:
        """Return the free space of the store's disk."""
        return self._databases.free_bytes()

    def watermark(self) -> int:
        """Return the watermark in milliseconds since 1970; 0 without windows. It never goes down.

        It is the largest window start that a record, the clock or another instance has set.
        """
        return max(self._written_watermark, self._announced_watermark)

    def advance_watermark(self, watermark: int) -> None:
        """Raise the watermark to at least this value, which the clock or another instance gives."""
        self._announced_watermark = max(self._announced_watermark, watermark)

    def is_expired(self, entry: Entry) -> bool:
        """Return whether the entry's window has expired by the watermark."""
        return self._buckets.is_expired(entry.window_start, self.watermark())

    def oldest_live_window(self) -> int:
        """Return the start of the oldest window that has not expired by the watermark."""
        return self._buckets.oldest_live_window(self.watermark())

    def is_open(self, window_start: int) -> bool:
        """Return whether a later version of the window may come."""
        return window_start >= self.closed_before()

    def closed_before(self) -> int:
        """Return the start of the first window of which a later version may come: all before it are closed.

        In a replay the watermark closes windows, in other states only `close_windows`: neither the clock nor a
        record shows that all records of a window are read.
        """
        return self._buckets.closed_before(self._complete if self._state.expires_by_clock else self.watermark())

    def close_windows(self, watermark: int) -> None:
        """Close the windows that have ended by this watermark. `apply` and `drop_expired` write it."""
        self._complete = max(self._complete, watermark)

    def position(self, partition: int) -> int | None:
        """Return the offset of the first record not yet applied; None if the partition was never read."""
        return self._positions.get(partition)

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        """Write what is newer and the partitions' positions in one transaction; return what changed for readers.

        Drops the time buckets that have expired and are no longer remembered.
        """
        batch = list(updates)
        bulk = len(batch) >= BULK_SIZE
        if bulk:
            batch.sort(key=KEY)
        windows = {entry.window_start for _, _, _, entry, _ in batch if entry is not None}
        watermark = max([self.watermark(), *(start - self._buckets.lateness for start in windows)])
        oldest = self._buckets.oldest(watermark)
        homes = {start: self._buckets.of(start) for start in windows if self._buckets.is_stored(start, watermark)}
        with self._databases.writing() as txn:
            buckets = self._make_room(txn, oldest, homes.values())
            writes = self._batch(txn, self._slots_of(buckets), bulk=bulk)
            for start in range(0, len(batch), SPACE_CHECK_SIZE):
                updates = batch[start : start + SPACE_CHECK_SIZE]
                self._databases.require_space(len(updates), _size(updates))
                for key, _, _, entry, window_start in updates:
                    if entry is None:
                        writes.delete(key, window_start)
                    elif (bucket := homes.get(entry.window_start)) is not None:
                        writes.put(key, entry, bucket)
            complete = self._complete
            self._metadata.write(txn, watermark=watermark, complete=complete, positions=positions, buckets=buckets)
        self._written_watermark, self._buckets_by_slot = watermark, buckets
        self._written_complete = complete
        self._positions.update(positions)
        self._newest_first = self._ordered()
        return writes.changes

    def drop_expired(self) -> None:
        """Write the watermarks and drop time buckets that are no longer remembered, although no record arrives.

        Runs in the thread that writes.
        """
        watermark = self.watermark()
        oldest = self._buckets.oldest(watermark)
        ahead = max(watermark - self._written_watermark, self._complete - self._written_complete)
        if ahead >= WATERMARK_SAVE_MS or any(bucket < oldest for bucket in self._buckets_by_slot.values()):
            self.apply((), {})

    def caught_up_at(self, partition: int) -> int | None:
        """Return when the store last had all records of the partition, in milliseconds since 1970; None: unknown."""
        return self._caught_up_at.get(partition)

    def mark_caught_up(self, times: Mapping[int, int]) -> None:
        """Record that the store had all records of these partitions at these times, or starts to read them again."""
        with self._databases.writing() as txn:
            self._metadata.mark_caught_up(txn, times)
        self._caught_up_at.update(times)

    def is_clear_pending(self, partition: int) -> bool:
        """Return whether the partition was cleared in part, perhaps by an earlier process."""
        return partition in self._clearing

    def begin_clear(self, partition: int) -> None:
        """Delete the position of a partition that has to be read again. A later process clears it, too."""
        with self._databases.writing() as txn:
            self._metadata.clear(txn, partition, pending=True)
        self._forget_position(partition)
        self._clearing.setdefault(partition, BEGINNING)

    def clear_partition(self, partition: int) -> bool:
        """Delete some thousand entries of a partition that has to be read again; return whether none is left.

        The first call deletes the partition's position. The partition must not be read before all entries are gone.
        """
        slot, start = self._clearing.get(partition, BEGINNING)
        with self._databases.writing() as txn:
            writes = self._batch(txn, self._slots_of(self._buckets_by_slot), bulk=True)
            after = writes.clear_some(partition, self._databases.slots[slot], start, self._databases.require_space)
            place = (slot + 1, b"") if after is None else (slot, after)
            done = place == END
            self._metadata.clear(txn, partition, pending=not done)
        self._forget_position(partition)
        self._clearing[partition] = place
        if done:
            del self._clearing[partition]
        return done

    def _forget_position(self, partition: int) -> None:
        self._positions.pop(partition, None)
        self._caught_up_at.pop(partition, None)

    def finish_bulk_load(self) -> None:
        """Switch from fast loading to fast reading after a rebuild. Blocks the event loop for about 50 ms."""
        if self._databases.finish_bulk_load():
            self._bind()
            self._newest_first = self._ordered()

    def close(self) -> None:
        """Make everything durable, and close."""
        self._databases.close()
        self._folder.close((self.watermark(), self._complete))

    def _bind(self) -> None:
        self._metadata = StoreMetadata(self._databases.facts)
        self._begin = self._databases.environment.begin

    def _starts(self, time: int | None) -> tuple[int, int]:
        """Return the starts [first, end) of the windows that reads return, or of those that contain a time."""
        if time is None and not self._names.has_windows:
            return ALL_STARTS
        oldest = self.oldest_live_window() if self._names.has_windows else FIRST_START
        return (oldest, END_START) if time is None else (max(time - self._buckets.window + 1, oldest), time + 1)

    def _live_slots(self, txn: Transaction[bytes]) -> list[Slot]:
        """Return the slots of the buckets that have not expired, as they are in this transaction, newest first."""
        watermark = self.watermark()
        buckets = sorted(((bucket, slot) for slot, bucket in self._metadata.buckets(txn).items()), reverse=True)
        return [
            self._databases.slots[slot]
            for bucket, slot in buckets
            if not self._buckets.is_bucket_expired(bucket, watermark)
        ]

    def _check_indexed(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path not in self._paths:
                raise NotIndexedError(self._state.name, path, self._paths)

    def _make_room(self, txn: Transaction[bytes], oldest: int, wanted: Collection[int]) -> dict[int, int]:
        """Drop expired buckets, and assign a slot to each wanted one; return the buckets by slot."""
        for slot, bucket in self._buckets_by_slot.items():
            if bucket < oldest:
                for database in self._databases.slots[slot].databases:
                    txn.drop(database, delete=False)
        buckets = {slot: bucket for slot, bucket in self._buckets_by_slot.items() if bucket >= oldest}
        return buckets | {bucket % SLOTS: bucket for bucket in wanted}

    def _slots_of(self, buckets: Mapping[int, int]) -> dict[int, Slot]:
        return {bucket: self._databases.slots[slot] for slot, bucket in buckets.items()}

    def _batch(self, txn: Transaction[bytes], slots: Mapping[int, Slot], *, bulk: bool) -> WriteBatch:
        return WriteBatch(
            txn,
            slots,
            state=self._state.name,
            names=self._names,
            index=self._index,
            history=self._history,
            bulk=bulk,
        )

    def _ordered(self) -> tuple[Slot, ...]:
        """Return all slots in use, the newest bucket first. A reader may see a newer bucket than is known here."""
        used = SLOTS if self._buckets.remembered else 1
        order = sorted(range(used), key=lambda slot: -self._buckets_by_slot.get(slot, NO_BUCKET))
        return tuple(self._databases.slots[slot] for slot in order)


def _size(updates: Sequence[Update]) -> int:
    return sum([len(entry.value) for _, _, _, entry, _ in updates if entry is not None])


def _shape(state: NamedState, times: TimeBuckets) -> dict[str, Any]:
    """Return the parts of the declaration that the file's content depends on."""
    return {
        "state": state.name,
        "topic": state.topic,
        "paths": [state.key, state.window_start, state.epoch, state.version, state.event_time],
        "indexes": list(state.query.indexes),
        "history": state.query.history > 1,
        "remembered_ms": times.remembered,
        **({"silence": True} if state.query.silence else {}),
    } | ({"window_ms": times.window, "bucket_ms": times.width} if times.window else {})
