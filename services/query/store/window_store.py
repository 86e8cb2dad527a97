"""The store of a windowed state, in LMDB: an entry for each window of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from services.query.store.buckets import milliseconds
from services.query.store.environment import Databases
from services.query.store.lmdb_store import LmdbStore
from services.query.store.packing import unpack
from services.query.store.paging import PageRequest
from services.query.store.store import WindowPage
from services.query.store.window_batch import WindowBatch
from services.query.store.window_index import IndexedWindow, WindowIndex, newest_window
from services.query.store.window_keys import FIRST_START, LAST_START, encode_key
from services.query.store.window_paging import WindowPager
from services.query.store.window_range import latest_window, windows_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from lmdb import Transaction

    from contracts.model.named_state import NamedState
    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.silent_paging import SilentPager
    from services.query.store.store import EntryPage, WindowPageRequest


class LmdbWindowStore(LmdbStore):
    """See `WindowStore`. A window is in the bucket of its start, so that the slots hold disjoint ranges of windows."""

    def __init__(self, folder: Path, state: NamedState, boot: str) -> None:
        """See `LmdbStore`."""
        super().__init__(folder, state, boot)
        self._columns = 2 * len(self._paths)
        self._window = self._buckets.window
        self._every = self._window if state.every is None else milliseconds(state.every)

    @override
    def get(self, key: str) -> Entry | None:
        """See `Store`."""
        return self._latest([key], FIRST_START, LAST_START)[0]

    @override
    def get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        """See `Store`."""
        return self._latest(keys, FIRST_START, LAST_START)

    @override
    def versions(self, key: str) -> list[Entry]:
        """See `Store`."""
        return self._versions(key, FIRST_START, LAST_START)

    def get_at(self, key: str, time: int) -> Entry | None:
        """See `WindowStore`."""
        return self._latest([key], time - self._window + 1, time + 1)[0]

    def get_many_at(self, keys: Sequence[str], time: int) -> list[Entry | None]:
        """See `WindowStore`."""
        return self._latest(keys, time - self._window + 1, time + 1)

    def versions_at(self, key: str, time: int) -> list[Entry]:
        """See `WindowStore`."""
        return self._versions(key, time - self._window + 1, time + 1)

    def is_open(self, window_start: int) -> bool:
        """See `WindowStore`."""
        return window_start >= self.closed_before()

    def closed_before(self) -> int:
        """See `WindowStore`."""
        return self._buckets.closed_before(self._complete if self._state.expires_by_clock else self.watermark())

    def close_windows(self, watermark: int) -> None:
        """See `WindowStore`."""
        self._complete = max(self._complete, watermark)

    def windows(self, key: str, *, start: int | None, end: int | None, newest_first: bool, limit: int) -> list[Entry]:
        """See `WindowStore`."""
        first = max(self.oldest_live_window(), FIRST_START if start is None else start)
        bound, name = LAST_START if end is None else end, encode_key(key)
        found: list[Entry] = []
        if name is None:
            return found
        with self._begin() as txn:
            slots = self._live_slots(txn)
            for slot in slots if newest_first else reversed(slots):
                for _, data in windows_in(txn, slot, name, first, bound, newest_first=newest_first):
                    found.append(unpack(data, self._columns))
                    if len(found) == limit:
                        return found
        return found

    @override
    def page(
        self, *, prefix: str, after: str | None, limit: int, where: Mapping[str, str], partitions: Collection[int]
    ) -> EntryPage:
        """See `Store`."""
        self._check_indexed(where)
        request, oldest = PageRequest(prefix, after, limit, where, partitions), self.oldest_live_window()
        with self._begin() as txn:
            return self._window_pager.newest(txn, self._live_slots(txn), request, oldest)

    def window_page(self, request: WindowPageRequest) -> WindowPage:
        """See `WindowStore`."""
        self._check_indexed((*request.where, *filter(None, [request.order_by])))
        after = max(request.time - self._every, self.oldest_live_window() - 1)
        with self._begin() as txn:
            for slot in self._live_slots(txn):
                start = newest_window(txn, slot.index, after, request.time)
                if start is not None:
                    return self._window_pager.window(IndexedWindow(txn, slot.index, start), slot, request)
        return WindowPage(None, (), None)

    @override
    def _find_alive(self, txn: Transaction[bytes], slots: Sequence[Slot], name: bytes) -> bytes | None:
        """Return the packed entry of the key's newest window."""
        found = latest_window(txn, slots, name, self.oldest_live_window(), LAST_START)
        return None if found is None else found[1]

    @override
    def _silent_pager(self, columns: int | None = None) -> SilentPager:
        return super()._silent_pager(self._columns if columns is None else columns)

    def _latest(self, keys: Sequence[str], first: int, end: int) -> list[Entry | None]:
        """Return the entry of the latest window in [first, end) of each key."""
        first = max(first, self.oldest_live_window())
        slots, names = self._newest_first, map(encode_key, keys)
        with self._begin() as txn:
            found = [None if name is None else latest_window(txn, slots, name, first, end) for name in names]
        return [None if one is None else unpack(one[1], self._columns) for one in found]

    def _versions(self, key: str, first: int, end: int) -> list[Entry]:
        """Return the stored entries of the latest window in [first, end), oldest first."""
        name, first = encode_key(key), max(first, self.oldest_live_window())
        with self._begin() as txn:
            found = None if name is None else latest_window(txn, self._newest_first, name, first, end)
            if found is None:
                return []
            entry_key, data, slot = found
            stored = [*self._history.all(txn, slot.history, entry_key), data]
        return [unpack(one, self._columns) for one in stored]

    @override
    def _open_databases(self, folder: Path) -> Databases:
        history = self._state.query.history > 1
        return Databases(folder, 1 + len(self._paths) + self._state.query.silence, history=history, windowed=True)

    @override
    def _bind_index(self) -> None:
        self._window_index = WindowIndex(self._paths)
        self._window_pager = WindowPager(self._paths)

    @override
    def _batch(self, txn: Transaction[bytes], slots: Mapping[int, Slot], *, bulk: bool) -> WindowBatch:
        return WindowBatch(
            txn,
            slots,
            state=self._state.name,
            index=self._window_index,
            times=self._times,
            history=self._history,
            bulk=bulk,
        )
