"""Pages through keys: the buckets merged, bounded in what it looks at, for it runs on the event loop."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from contracts.types.key import LARGEST_KEY
from services.query.store.packing import mark, mark_at, order, partition, unpack
from services.query.store.store import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.field_index import Index

LOOKED_AT = 2000
"""How many keys that are not on the page it passes before it ends: some milliseconds."""


class Wanted(NamedTuple):
    """See `Store.page`."""

    prefix: str
    after: str | None
    limit: int
    where: Mapping[str, str]
    partitions: Collection[int]


class Pager:
    """Makes the pages of a state with these indexed paths."""

    def __init__(self, paths: Sequence[str], index: Index) -> None:
        self._numbers = {path: number for number, path in enumerate(paths)}
        self._index = index

    def page(
        self, txn: Transaction[bytes], slots: Sequence[Slot], wanted: Wanted, ended: Callable[[int], bool]
    ) -> Page:
        """The page. Entries whose life, by its beginning, has ended are passed over."""
        begin = wanted.prefix.encode(errors="surrogatepass")
        marks = {self._numbers[path]: mark(text) for path, text in wanted.where.items()}
        walks = [self._walk(txn, slot, _start(begin, wanted.after), marks) for slot in slots]
        items: list[tuple[str, Entry]] = []
        passed = 0
        for name, data in merge(*walks, key=lambda one: one[0]):
            if not name.startswith(begin):
                break
            if (
                partition(data) in wanted.partitions
                and not ended(order(data)[0])
                and all(mark_at(data, number) == one for number, one in marks.items())
            ):
                items.append((name.decode(), unpack(data, len(self._numbers))))
            else:
                passed += 1
            if len(items) == wanted.limit or passed == LOOKED_AT:
                return Page(items, name.decode())
        return Page(items, None)

    def _walk(
        self, txn: Transaction[bytes], slot: Slot, start: bytes, marks: Mapping[int, bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        if marks:
            number, first = next(iter(marks.items()))
            for name in self._index.find(txn, slot.index, number, first, start):
                data = txn.get(name, db=slot.entries)
                if data is not None:
                    yield name, data
            return
        with txn.cursor(slot.entries) as cursor:
            if cursor.set_range(start) if start else cursor.first():
                yield from cursor


def _start(prefix: bytes, after: str | None) -> bytes:
    """The least key that may come. No key is longer than LARGEST_KEY, and LMDB does not look for what is."""
    if after is None:
        return prefix[: LARGEST_KEY + 1]
    return max(prefix, after.encode(errors="surrogatepass") + b"\0")[: LARGEST_KEY + 1]
