"""A batch of writes in one transaction: entries that are newer, with their history and index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.query.store.entry import Change, make_tuple
from services.query.store.packing import event_time, order, pack
from services.query.store.packing import partition as partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lmdb import Transaction, _Database

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.event_time_index import EventTimeIndex
    from services.query.store.history import History

CLEAR_SIZE = 5_000
"""The number of keys that one transaction checks when it clears a partition."""
SPACE_CHECK_SIZE = 100
"""Free disk space is checked for so many updates at a time, instead of for a whole batch."""


class EntryIndex(Protocol):
    """Finds entries by their fields. Its columns are stored in each entry, so that they can be replaced."""

    def columns(self, value: bytes) -> bytes:
        """Return the columns of an entry's value."""

    def columns_of(self, data: bytes) -> bytes:
        """Return the columns in a packed entry."""

    def move(
        self, txn: Transaction[bytes], database: _Database, name: bytes, old: bytes | None, new: bytes | None
    ) -> None:
        """Replace the columns of an entry; `old` is None for a new entry, `new` for a deleted one."""


class WriteBatch:
    """One transaction on the entries of a state. A key is only in the bucket of its current window.

    `bulk`: the batch is large, and most keys are new.
    """

    def __init__(  # noqa: PLR0913 (all are of the store, the only caller)
        self,
        txn: Transaction[bytes],
        slots: Mapping[int, Slot],
        *,
        state: str,
        index: EntryIndex,
        times: EventTimeIndex | None,
        history: History,
        bulk: bool,
    ) -> None:
        self._txn = txn
        self._slots = slots
        self._others = self._other_slots()
        self._state = state
        self._index = index
        self._times = times
        self._history = history
        self._bulk = bulk
        self._changes: dict[bytes, Change] = {}

    @property
    def changes(self) -> list[Change]:
        """The changes that readers see after the commit: the last one of each entry."""
        return list(self._changes.values())

    def put(self, key: str, entry: Entry, bucket: int) -> None:
        """Write the entry into its bucket if it is newer than the stored one."""
        txn, name, home = self._txn, self._name(key, entry), self._slots[bucket]
        if self._bulk:  # saves a second lookup of new keys
            if self._others[bucket] and not self._leave_other_bucket(name, entry, bucket):
                return
            if self._put_new(name, entry, home):
                self._changed(name, key, entry)
                return
        data = txn.get(name, db=home.entries)
        old = old_time = None
        if data is not None:
            before = order(data)
            if entry.order <= before:
                return
            if before[0] == entry.window_start:
                old, old_time = self._index.columns_of(data), event_time(data)
                self._history.push(txn, home.history, name, before, data)
            else:
                self._discard(name, data, home)
        elif not self._leave_other_bucket(name, entry, bucket):
            return
        new = self._index.columns(entry.value)
        txn.put(name, pack(entry, new), db=home.entries)
        self._index.move(txn, home.index, name, old, new)
        self._move_time(name, home, old_time, entry.event_time)
        self._changed(name, key, entry)

    def _put_new(self, name: bytes, entry: Entry, home: Slot) -> bool:
        new = self._index.columns(entry.value)
        if not self._txn.put(name, pack(entry, new), db=home.entries, overwrite=False):
            return False
        self._index.move(self._txn, home.index, name, None, new)
        self._move_time(name, home, None, entry.event_time)
        return True

    def delete(self, key: str, window_start: int | None) -> None:
        """Apply a tombstone: delete the key if its window has this start. None: whatever its window is."""
        name = key.encode()
        for slot in self._slots.values():
            data = self._txn.get(name, db=slot.entries)
            if data is not None:
                if window_start is None or order(data)[0] == window_start:
                    self._discard(name, data, slot)
                    self._changed(name, key, None)
                return

    def clear_some(
        self, partition: int, slot: Slot, start: bytes, require_space: Callable[[int], None]
    ) -> bytes | None:
        """Delete entries of a partition from a slot, from a key on; return the key to continue from, None at the end.

        `require_space` checks that the disk has room for so many updates.
        """
        found, checked, last = [], 0, None
        with self._txn.cursor(slot.entries) as cursor:
            if cursor.set_range(start) if start else cursor.first():
                for name, data in cursor:
                    if partition_of(data) == partition:
                        found.append((name, data))
                    checked += 1
                    if checked == CLEAR_SIZE:
                        last = name
                        break
        for at, (name, data) in enumerate(found):
            if at % SPACE_CHECK_SIZE == 0:
                require_space(SPACE_CHECK_SIZE)
            self._discard(name, data, slot)
        return last

    def _name(self, key: str, entry: Entry) -> bytes:  # noqa: ARG002 (a windowed state has an entry for each window)
        """Return the key of the entry in its database."""
        return key.encode()

    def _other_slots(self) -> dict[int, list[Slot]]:
        """Return, by bucket, the slots that may have an entry of the same key, which a newer one replaces."""
        return {one: [slot for other, slot in self._slots.items() if other != one] for one in self._slots}

    def _leave_other_bucket(self, name: bytes, entry: Entry, bucket: int) -> bool:
        """Delete the key from another bucket if it has an older entry there; return False if that entry is newer."""
        for slot in self._others[bucket]:
            data = self._txn.get(name, db=slot.entries)
            if data is not None:
                if order(data) > entry.order:
                    return False
                self._discard(name, data, slot)
                return True
        return True

    def _discard(self, name: bytes, data: bytes, slot: Slot) -> None:
        self._txn.delete(name, db=slot.entries)
        self._history.clear(self._txn, slot.history, name)
        self._index.move(self._txn, slot.index, name, self._index.columns_of(data), None)
        self._move_time(name, slot, event_time(data), None)

    def _move_time(self, name: bytes, slot: Slot, old: int | None, new: int | None) -> None:
        """Replace the event time of an entry that was written or deleted."""
        if self._times is not None:
            self._times.move(self._txn, slot.index, name, old, new)

    def _changed(self, name: bytes, key: str, entry: Entry | None, window_start: int | None = None) -> None:
        self._changes.pop(name, None)
        self._changes[name] = make_tuple(Change, (self._state, key, entry, window_start))
