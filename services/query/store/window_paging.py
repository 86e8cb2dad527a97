"""Reads pages of the keys of a windowed state. The work per page is bounded, because it runs on the event loop."""

from __future__ import annotations

from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING

from contracts.types.key import LARGEST_KEY
from services.query.store.packing import hash_at, order, partition, unpack, value_hash
from services.query.store.paging import MAX_SKIPPED, first_name
from services.query.store.store import EntryPage, ScanPosition, WindowPage
from services.query.store.window_keys import key_prefix, split_entry_key, window_entry_key, windows_end
from services.query.store.window_range import last_before

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.paging import PageRequest
    from services.query.store.store import WindowPageRequest
    from services.query.store.window_index import IndexedWindow


class EntryFilter:
    """Passes entries of these partitions whose indexed fields have these texts."""

    def __init__(self, paths: Sequence[str], where: Mapping[str, str], partitions: Collection[int]) -> None:
        self._hashes = {paths.index(path): value_hash(text) for path, text in where.items()}
        self._partitions = partitions

    def passes(self, data: bytes) -> bool:
        """Return whether the packed entry passes."""
        return partition(data) in self._partitions and all(
            hash_at(data, field) == one for field, one in self._hashes.items()
        )


class WindowPager:
    """Reads the pages of a windowed state with these indexed paths."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._columns = 2 * len(paths)

    def newest(self, txn: Transaction[bytes], slots: Sequence[Slot], request: PageRequest, oldest: int) -> EntryPage:
        """Return the next keys, each with its newest window; slots are newest first. `oldest` bounds them."""
        wanted = EntryFilter(self._paths, request.where, request.partitions)
        prefix = request.prefix.encode(errors="surrogatepass")
        walks = [_newest_windows(txn, slot, first_name(prefix, request.after)) for slot in slots]
        items: list[tuple[str, Entry]] = []
        skipped = 0
        for name, found in groupby(merge(*walks, key=lambda one: one[0]), key=lambda one: one[0]):
            if not name.startswith(prefix):
                break
            data = next(found)[1]  # of the newest bucket that has the key: merge is stable
            if order(data)[0] >= oldest and wanted.passes(data):
                items.append((name.decode(), unpack(data, self._columns)))
            else:
                skipped += 1
            if len(items) == request.limit or skipped == MAX_SKIPPED:
                return EntryPage(items, name.decode())
        return EntryPage(items, None)

    def window(self, window: IndexedWindow, slot: Slot, request: WindowPageRequest) -> WindowPage:
        """Return the next keys of a window, which is in this slot."""
        wanted = EntryFilter(self._paths, request.where, request.partitions)
        prefix = request.prefix.encode(errors="surrogatepass")
        items: list[tuple[ScanPosition, Entry]] = []
        skipped = 0
        for number, name in self._walk(window, request, prefix):
            is_within = name.startswith(prefix)
            if not is_within and request.order_by is None:
                break
            entry_key = window_entry_key(name, window.window_start)
            data = window.txn.get(entry_key, db=slot.entries) if is_within else None
            if data is not None and wanted.passes(data):
                items.append((ScanPosition(number, name.decode()), unpack(data, self._columns)))
            else:
                skipped += 1
            if len(items) == request.limit or skipped == MAX_SKIPPED:
                return WindowPage(window.window_start, items, ScanPosition(number, name.decode()))
        return WindowPage(window.window_start, items, None)

    def _walk(self, window: IndexedWindow, request: WindowPageRequest, prefix: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield the keys that may be on the page, with their numbers, from its beginning on."""
        after = request.after
        if request.order_by is not None:
            place = None if after is None else (after.number, after.key.encode(errors="surrogatepass")[:LARGEST_KEY])
            yield from window.ordered(self._paths.index(request.order_by), place, descending=request.descending)
            return
        first = first_name(prefix, None if after is None else after.key)
        if request.where:
            path, text = next(iter(request.where.items()))
            names = window.find(self._paths.index(path), text, first)
        else:
            names = window.keys(first)
        for name in names:
            yield 0.0, name


def _newest_windows(txn: Transaction[bytes], slot: Slot, first: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each key of the slot, from a first one on, with the entry of its newest window there."""
    with txn.cursor(slot.entries) as cursor:
        found = cursor.set_range(key_prefix(first)) if first else cursor.first()
        while found:
            name, _ = split_entry_key(cursor.key())
            last_before(cursor, windows_end(name))
            yield name, cursor.value()
            found = cursor.next()
