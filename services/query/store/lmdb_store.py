"""The store of a named state, in LMDB."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import lmdb

from services.query.store.buckets import SLOTS, time_buckets
from services.query.store.environment import Databases
from services.query.store.errors import NoSilenceError, NotIndexedError
from services.query.store.event_time_index import EventTimeIndex
from services.query.store.field_index import FieldIndex
from services.query.store.folder import StoreFolder
from services.query.store.history import History
from services.query.store.packing import order, unpack
from services.query.store.paging import Pager, PageRequest
from services.query.store.silent_paging import SilentPager
from services.query.store.store_metadata import StoreMetadata
from services.query.store.write_batch import SPACE_CHECK_SIZE, WriteBatch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from lmdb import Transaction

    from contracts.model.named_state import NamedState
    from services.query.store.buckets import TimeBuckets
    from services.query.store.entry import Change, Entry
    from services.query.store.environment import Slot
    from services.query.store.store import EntryPage, SilentPage, SilentPageRequest, Update

BULK_SIZE = 1000
"""A batch of at least so many updates is written in key order: neighbours are on one page of the file."""
WATERMARK_SAVE_MS = 10_000
"""A watermark that no record advances is written when it is this far ahead of the one written last."""
KEY = itemgetter(0)
BEGINNING, END = (0, b""), (SLOTS, b"")
"""Positions of a clear: a slot, and a key in it."""
NO_BUCKET = -(1 << 63)
"""Less than every bucket."""


class LmdbStore:
    """See `Store`. `boot` identifies the start of the machine. Raises StoreError when it opens and when it writes."""

    def __init__(self, folder: Path, state: NamedState, boot: str) -> None:
        self._state = state
        self._buckets = time_buckets(state)
        self._paths = state.query.indexes
        self._times = EventTimeIndex() if state.query.silence else None
        self._folder = StoreFolder(folder, _shape(state, self._buckets), boot, state.partitions)
        try:
            self._databases = self._open_databases(folder)
        except BaseException:
            self._folder.release()
            raise
        self._history = History(state.query.history - 1)
        self._bind_index()
        self._bind()
        with self._begin() as txn:
            self._written_watermark = self._announced_watermark = self._metadata.watermark(txn)
            self._written_complete = self._complete = self._metadata.complete_watermark(txn)
            self._positions = self._metadata.positions(txn)
            self._buckets_by_slot = self._metadata.buckets(txn)
            self._caught_up_at = self._metadata.caught_up_at(txn)
            self._clearing = dict.fromkeys(self._metadata.clearing(txn), BEGINNING)
        self._newest_first = self._ordered()

    def get(self, key: str) -> Entry | None:
        """See `Store`."""
        txn = self._begin()
        try:
            data, _ = self._find(txn, key)
        finally:
            txn.abort()
        return None if data is None else unpack(data, len(self._paths))

    def get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        """See `Store`."""
        txn, indexes = self._begin(), len(self._paths)
        try:
            found = self._in_newest(txn, keys)
            found = [self._find(txn, key)[0] if data is None else data for key, data in zip(keys, found, strict=True)]
        finally:
            txn.abort()
        return [None if data is None else unpack(data, indexes) for data in found]

    def versions(self, key: str) -> list[Entry]:
        """See `Store`."""
        with self._begin() as txn:
            data, slot = self._find(txn, key)
            if data is None or slot is None:
                return []
            stored = [*self._history.all(txn, slot.history, key.encode()), data]
        return [unpack(one, len(self._paths)) for one in stored]

    def page(
        self, *, prefix: str, after: str | None, limit: int, where: Mapping[str, str], partitions: Collection[int]
    ) -> EntryPage:
        """See `Store`."""
        self._check_indexed(where)
        watermark = self.watermark()
        with self._begin() as txn:
            return self._pager.page(
                txn,
                self._live_slots(txn),
                PageRequest(prefix, after, limit, where, partitions),
                lambda window_start: self._buckets.is_expired(window_start, watermark),
            )

    def silent_page(self, request: SilentPageRequest) -> SilentPage:
        """See `Store`."""
        self._check_indexed(request.where)
        with self._begin() as txn:
            slots = self._live_slots(txn)
            return self._silent_pager().page(txn, slots, request, partial(self._find_alive, txn, slots))

    def key_count(self) -> int:
        """See `Store`."""
        with self._begin() as txn:
            return sum(txn.stat(slot.entries)["entries"] for slot in self._newest_first)

    def watermark(self) -> int:
        """See `Store`."""
        return max(self._written_watermark, self._announced_watermark)

    def advance_watermark(self, watermark: int) -> None:
        """See `Store`."""
        self._announced_watermark = max(self._announced_watermark, watermark)

    def is_expired(self, entry: Entry) -> bool:
        """See `Store`."""
        return self._buckets.is_expired(entry.window_start, self.watermark())

    def oldest_live_window(self) -> int:
        """See `Store`."""
        return self._buckets.oldest_live_window(self.watermark())

    def position(self, partition: int) -> int | None:
        """See `Store`."""
        return self._positions.get(partition)

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        """See `Store`."""
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
        """See `Store`."""
        watermark = self.watermark()
        oldest = self._buckets.oldest(watermark)
        ahead = max(watermark - self._written_watermark, self._complete - self._written_complete)
        if ahead >= WATERMARK_SAVE_MS or any(bucket < oldest for bucket in self._buckets_by_slot.values()):
            self.apply((), {})

    def caught_up_at(self, partition: int) -> int | None:
        """See `Store`."""
        return self._caught_up_at.get(partition)

    def mark_caught_up(self, times: Mapping[int, int]) -> None:
        """See `Store`."""
        with self._databases.writing() as txn:
            self._metadata.mark_caught_up(txn, times)
        self._caught_up_at.update(times)

    def is_clear_pending(self, partition: int) -> bool:
        """See `Store`."""
        return partition in self._clearing

    def clear_partition(self, partition: int) -> bool:
        """See `Store`."""
        slot, start = self._clearing.get(partition, BEGINNING)
        with self._databases.writing() as txn:
            writes = self._batch(txn, self._slots_of(self._buckets_by_slot), bulk=True)
            after = writes.clear_some(partition, self._databases.slots[slot], start, self._databases.require_space)
            place = (slot + 1, b"") if after is None else (slot, after)
            done = place == END
            self._metadata.clear(txn, partition, pending=not done)
        self._positions.pop(partition, None)
        self._caught_up_at.pop(partition, None)
        self._clearing[partition] = place
        if done:
            del self._clearing[partition]
        return done

    def finish_bulk_load(self) -> None:
        """See `Store`."""
        if self._databases.finish_bulk_load():
            self._bind()
            self._newest_first = self._ordered()

    def close(self) -> None:
        """See `Store`."""
        self._databases.close()
        self._folder.close()

    def _open_databases(self, folder: Path) -> Databases:
        return Databases(folder, len(self._paths) + self._state.query.silence, history=self._state.query.history > 1)

    def _bind_index(self) -> None:
        self._index = FieldIndex(self._paths)
        self._pager = Pager(self._paths, self._index)

    def _bind(self) -> None:
        self._metadata = StoreMetadata(self._databases.facts)
        self._begin = self._databases.environment.begin

    def _find(self, txn: Transaction[bytes], key: str) -> tuple[bytes | None, Slot | None]:
        try:
            name = key.encode()
            for slot in self._newest_first:
                data = txn.get(name, db=slot.entries)
                if data is not None:
                    return data, slot
        except (UnicodeEncodeError, lmdb.BadValsizeError):
            pass  # no record has such a key
        return None, None

    def _find_alive(self, txn: Transaction[bytes], slots: Sequence[Slot], name: bytes) -> bytes | None:
        """Return the packed entry of a key, unless its window has expired."""
        found = (txn.get(name, db=slot.entries) for slot in slots)
        data = next((one for one in found if one is not None), None)
        return None if data is None or order(data)[0] < self.oldest_live_window() else data

    def _silent_pager(self, columns: int | None = None) -> SilentPager:
        if self._times is None:
            raise NoSilenceError(self._state.name)
        return SilentPager(self._paths, len(self._paths) if columns is None else columns, self._times)

    def _in_newest(self, txn: Transaction[bytes], keys: Sequence[str]) -> Sequence[bytes | None]:
        """Return the entries in the newest bucket, where most keys are."""
        get, newest = txn.get, self._newest_first[0].entries
        try:
            return [get(key.encode(), None, newest) for key in keys]
        except (UnicodeEncodeError, lmdb.BadValsizeError):
            return [None] * len(keys)

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
            index=self._index,
            times=self._times,
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
