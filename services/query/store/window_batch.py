"""A batch of writes to a windowed state: each window of a key has an entry of its own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from typing_extensions import override

from services.query.store.packing import event_time
from services.query.store.window_keys import (
    FIRST_START,
    LAST_START,
    split_entry_key,
    window_entry_key,
    windows_prefix,
)
from services.query.store.window_range import latest_window
from services.query.store.write_batch import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    def _move_time(self, name: bytes, slot: Slot, old: int | None, new: int | None) -> None:
        """Only the newest window of a key is in the index of event times: its neighbours enter and leave with it."""
        if self._times is None:
            return
        key, start = split_entry_key(name)
        if latest_window(self._txn, self._newest_first, key, start + 1, LAST_START) is not None:
            return
        before = None
        if old is None or new is None:
            before = latest_window(self._txn, self._newest_first, key, FIRST_START, start)
        if before is not None and old is None:
            self._times.move(self._txn, before[2].index, key, event_time(before[1]), None)
        self._times.move(self._txn, slot.index, key, old, new)
        if before is not None and new is None:  # after the entry of the other window, which may be equal
            self._times.move(self._txn, before[2].index, key, None, event_time(before[1]))

    @cached_property
    def _newest_first(self) -> Sequence[Slot]:
        return [self._slots[bucket] for bucket in sorted(self._slots, reverse=True)]

    @override
    def _name(self, key: str, entry: Entry) -> bytes:
        return window_entry_key(key.encode(), entry.window_start)

    @override
    def _other_slots(self) -> dict[int, list[Slot]]:
        return {slot: [] for slot in self._slots}
