"""A batch of writes to a windowed state: each window of a key has an entry of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from services.query.store.window_keys import split_entry_key, window_entry_key, windows_prefix
from services.query.store.write_batch import WriteBatch

if TYPE_CHECKING:
    from services.query.store.entry import Entry
    from services.query.store.environment import Slot


class WindowBatch(WriteBatch):
    """See `WriteBatch`. A window is in its bucket only, and no other window replaces it."""

    @override
    def delete(self, key: str, window_start: int | None) -> None:
        """Apply a tombstone: delete this window of the key. None: all of its windows."""
        prefix = windows_prefix(key.encode())
        name = prefix if window_start is None else window_entry_key(key.encode(), window_start)
        for slot in self._slots.values():
            for one, data in self._entries(slot, name):
                self._discard(one, data, slot)
                self._changed(one, key, None, split_entry_key(one)[1])

    def _entries(self, slot: Slot, prefix: bytes) -> list[tuple[bytes, bytes]]:
        found = []
        with self._txn.cursor(slot.entries) as cursor:
            if cursor.set_range(prefix):
                for name, data in cursor:
                    if not name.startswith(prefix):
                        break
                    found.append((name, data))
        return found

    @override
    def _name(self, key: str, entry: Entry) -> bytes:
        return window_entry_key(key.encode(), entry.window_start)

    @override
    def _other_slots(self) -> dict[int, list[Slot]]:
        return {one: [] for one in self._slots}
