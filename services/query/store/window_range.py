"""Reads the windows of one key, which are one range in each bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.store.window_keys import pack_start, windows_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lmdb import Cursor, Transaction

    from services.query.store.environment import Slot


def latest_window(
    txn: Transaction[bytes], slots: Iterable[Slot], key: bytes, first: int, end: int
) -> tuple[bytes, bytes, Slot] | None:
    """Return the entry of the key's latest window in [first, end), with its name and slot; slots are newest first."""
    for slot in slots:
        for name, data in windows_in(txn, slot, key, first, end, newest_first=True):
            return name, data, slot
    return None


def windows_in(  # noqa: PLR0913 (a range in a slot)
    txn: Transaction[bytes], slot: Slot, key: bytes, first: int, end: int, *, newest_first: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the key's windows in [first, end) that are in this slot, with their names, in order."""
    prefix = windows_prefix(key)
    lowest, bound = prefix + pack_start(first), prefix + pack_start(end)
    with txn.cursor(slot.entries) as cursor:
        found = last_before(cursor, bound) if newest_first else cursor.set_range(lowest)
        move = cursor.prev if newest_first else cursor.next
        while found and lowest <= (name := cursor.key()) < bound:
            yield name, cursor.value()
            found = move()


def last_before(cursor: Cursor[bytes], name: bytes) -> bool:
    """Move to the last entry before this name; return whether there is one."""
    return cursor.prev() if cursor.set_range(name) else cursor.last()
