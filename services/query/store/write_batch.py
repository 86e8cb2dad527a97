"""A batch of writes in one transaction: entries that are newer, with their history and index."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from services.query.store.entry import Change, make_tuple
from services.query.store.keys import END_START, FIRST_START
from services.query.store.packing import event_time, order, pack
from services.query.store.packing import partition as partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.history import History
    from services.query.store.index import TermIndex
    from services.query.store.keys import KeyNames

CLEAR_SIZE = 5_000
"""The number of keys that one transaction checks when it clears a partition."""
SPACE_CHECK_SIZE = 100
"""Free disk space is checked for so many updates at a time, instead of for a whole batch."""


class WriteBatch:
    """One transaction on the entries of a state.

    A window of a windowed state is in the bucket of its start. In other states a key has one window, which is in the
    bucket of its start: a newer one replaces it. `bulk`: the batch is large, and most entries are new.
    """

    def __init__(  # noqa: PLR0913 (all are of the store, the only caller)
        self,
        txn: Transaction[bytes],
        slots: Mapping[int, Slot],
        *,
        state: str,
        names: KeyNames,
        index: TermIndex,
        history: History,
        bulk: bool,
    ) -> None:
        self._txn = txn
        self._slots = slots
        self._state = state
        self._names = names
        self._index = index
        self._history = history
        self._bulk = bulk
        self._changes: dict[bytes, Change] = {}
        others = {one: [slot for other, slot in slots.items() if other != one] for one in slots}
        self._others: Mapping[int, list[Slot]] = {one: [] for one in slots} if names.has_windows else others

    @property
    def changes(self) -> list[Change]:
        """The changes that readers see after the commit: the last one of each entry."""
        return list(self._changes.values())

    def put(self, key: str, entry: Entry, bucket: int) -> None:
        """Write the entry into its bucket if it is newer than the stored one."""
        txn, home, encoded = self._txn, self._slots[bucket], key.encode()
        name = self._names.name(encoded, entry.window_start)
        if self._bulk:  # saves a second lookup of new keys
            if self._others[bucket] and not self._leave_other_bucket(name, entry, bucket):
                return
            if self._put_new(name, encoded, entry, home):
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
        self._index.move(txn, home.index, encoded, entry.window_start, old, new)
        self._move_time(encoded, entry.window_start, home, old_time, entry.event_time)
        self._changed(name, key, entry)

    def _put_new(self, name: bytes, key: bytes, entry: Entry, home: Slot) -> bool:
        new = self._index.columns(entry.value)
        if not self._txn.put(name, pack(entry, new), db=home.entries, overwrite=False):
            return False
        self._index.move(self._txn, home.index, key, entry.window_start, None, new)
        self._move_time(key, entry.window_start, home, None, entry.event_time)
        return True

    def delete(self, key: str, window_start: int | None) -> None:
        """Apply a tombstone: delete this window of the key. None: all of its windows."""
        first, end = (FIRST_START, END_START) if window_start is None else (window_start, window_start + 1)
        for slot in self._slots.values():
            for name, data, _ in list(self._names.windows(self._txn, slot, key.encode(), first, end)):
                self._discard(name, data, slot)
                self._changed(name, key, None, order(data)[0] if self._names.has_windows else None)

    def clear_some(
        self, partition: int, slot: Slot, start: bytes, require_space: Callable[[int], None]
    ) -> bytes | None:
        """Delete entries of a partition from a slot, from a name on; return the name to continue from, None at the end.

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
        key, window_start = self._names.key(name), order(data)[0]
        self._txn.delete(name, db=slot.entries)
        self._history.clear(self._txn, slot.history, name)
        self._index.move(self._txn, slot.index, key, window_start, self._index.columns_of(data), None)
        self._move_time(key, window_start, slot, event_time(data), None)

    def _move_time(self, key: bytes, window_start: int, slot: Slot, old: int | None, new: int | None) -> None:
        """Replace the event time of an entry that was written or deleted, if it is the newest window of its key.

        The window before it enters the index when it leaves, and leaves when it enters.
        """
        if not self._index.has_times:
            return
        txn, move, before = self._txn, self._index.move_time, None
        if self._names.has_windows:
            if self._names.newest(txn, self._newest_first, key, window_start + 1, END_START) is not None:
                return
            if old is None or new is None:
                before = self._names.newest(txn, self._newest_first, key, FIRST_START, window_start)
        if before is not None and old is None:
            move(txn, before.slot.index, key, event_time(before.data), None)
        move(txn, slot.index, key, old, new)
        if before is not None and new is None:  # after the entry of the other window, which may be equal
            move(txn, before.slot.index, key, None, event_time(before.data))

    @cached_property
    def _newest_first(self) -> Sequence[Slot]:
        return [self._slots[bucket] for bucket in sorted(self._slots, reverse=True)]

    def _changed(self, name: bytes, key: str, entry: Entry | None, window_start: int | None = None) -> None:
        self._changes.pop(name, None)
        self._changes[name] = make_tuple(Change, (self._state, key, entry, window_start))
