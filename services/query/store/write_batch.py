"""Writes a batch: what is newer, with all that goes with it, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.store.entry import Change, made
from services.query.store.packing import order, pack, partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.field_index import Index
    from services.query.store.history import History

PIECE = 5_000
"""How many keys are looked at in one transaction that forgets."""
AT_ONCE = 100
"""For so many updates it is seen that the disk has room: it need not have that for a whole batch."""


class Batch:
    """One transaction on the entries of a state, of `many` updates. A key is only in the bucket of its present life."""

    def __init__(  # noqa: PLR0913 (all of one store, which makes one)
        self,
        txn: Transaction[bytes],
        slots: Mapping[int, Slot],
        *,
        state: str,
        index: Index,
        history: History,
        many: bool,
    ) -> None:
        self._txn = txn
        self._slots = slots
        self._others = {one: [slot for other, slot in slots.items() if other != one] for one in slots}
        self._state = state
        self._index = index
        self._history = history
        self._many = many
        self._changes: dict[str, Change] = {}

    @property
    def changes(self) -> list[Change]:
        """What readers see new once the transaction is committed: of each key the last."""
        return list(self._changes.values())

    def put(self, key: str, entry: Entry, bucket: int) -> None:
        """Write the entry into its bucket, if it is newer than the key's."""
        txn, name, home = self._txn, key.encode(), self._slots[bucket]
        if self._many:  # most keys are new then, and are not looked for twice
            if self._others[bucket] and not self._leave(name, entry, bucket):
                return
            if self._put_new(name, entry, home):
                self._changed(key, entry)
                return
        data = txn.get(name, db=home.entries)
        old = b""
        if data is not None:
            before = order(data)
            if entry.order <= before:
                return
            if before[0] == entry.life:
                old = self._index.marks_of(data)
                self._history.push(txn, home.history, name, before, data)
            else:
                self._discard(name, data, home)
        elif not self._leave(name, entry, bucket):
            return
        new = self._index.marks(entry.value)
        txn.put(name, pack(entry, new), db=home.entries)
        self._index.move(txn, home.index, name, old, new)
        self._changed(key, entry)

    def _put_new(self, name: bytes, entry: Entry, home: Slot) -> bool:
        new = self._index.marks(entry.value)
        if not self._txn.put(name, pack(entry, new), db=home.entries, overwrite=False):
            return False
        if new:
            self._index.move(self._txn, home.index, name, b"", new)
        return True

    def remove(self, key: str, life: int | None) -> None:
        """A record without value: all of the key goes, if it is of this life. None: of any."""
        name = key.encode()
        for slot in self._slots.values():
            data = self._txn.get(name, db=slot.entries)
            if data is not None:
                if life is None or order(data)[0] == life:
                    self._discard(name, data, slot)
                    self._changed(key, None)
                return

    def forget(self, number: int, slot: Slot, start: bytes, require: Callable[[int], None]) -> bytes | None:
        """Remove entries of a partition from a slot, from a key on; gives where to go on, None at the end.

        `require` sees that the disk has room for so many.
        """
        gone, seen, last = [], 0, None
        with self._txn.cursor(slot.entries) as cursor:
            if cursor.set_range(start) if start else cursor.first():
                for name, data in cursor:
                    if partition(data) == number:
                        gone.append((name, data))
                    seen += 1
                    if seen == PIECE:
                        last = name
                        break
        for at, (name, data) in enumerate(gone):
            if at % AT_ONCE == 0:
                require(AT_ONCE)
            self._discard(name, data, slot)
        return last

    def _leave(self, name: bytes, entry: Entry, bucket: int) -> bool:
        """Take the key out of another bucket, if it is there with an earlier life. Whether the entry may come."""
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
        self._index.move(self._txn, slot.index, name, self._index.marks_of(data), b"")

    def _changed(self, key: str, entry: Entry | None) -> None:
        self._changes.pop(key, None)
        self._changes[key] = made(Change, (self._state, key, entry))
