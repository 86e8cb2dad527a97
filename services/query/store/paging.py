"""Reads pages of keys from the merged buckets. The work per page is bounded, because it runs on the event loop."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from contracts.types.key import LARGEST_KEY
from services.query.store.packing import hash_at, order, partition, unpack, value_hash
from services.query.store.store import EntryPage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.field_index import FieldIndex

MAX_SKIPPED = 2000
"""The number of keys that a page skips at most before it ends: some milliseconds."""


class PageRequest(NamedTuple):
    """See `Store.page`."""

    prefix: str
    after: str | None
    limit: int
    where: Mapping[str, str]
    partitions: Collection[int]


class Pager:
    """Reads the pages of a state with these indexed paths."""

    def __init__(self, paths: Sequence[str], index: FieldIndex) -> None:
        self._numbers = {path: number for number, path in enumerate(paths)}
        self._index = index

    def page(
        self, txn: Transaction[bytes], slots: Sequence[Slot], request: PageRequest, is_expired: Callable[[int], bool]
    ) -> EntryPage:
        """Return the page, without entries whose window has expired."""
        prefix = request.prefix.encode(errors="surrogatepass")
        hashes = {self._numbers[path]: value_hash(text) for path, text in request.where.items()}
        walks = [self._walk(txn, slot, first_name(prefix, request.after), hashes) for slot in slots]
        items: list[tuple[str, Entry]] = []
        skipped = 0
        for name, data in merge(*walks, key=lambda one: one[0]):
            if not name.startswith(prefix):
                break
            if (
                partition(data) in request.partitions
                and not is_expired(order(data)[0])
                and all(hash_at(data, number) == one for number, one in hashes.items())
            ):
                items.append((name.decode(), unpack(data, len(self._numbers))))
            else:
                skipped += 1
            if len(items) == request.limit or skipped == MAX_SKIPPED:
                return EntryPage(items, name.decode())
        return EntryPage(items, None)

    def _walk(
        self, txn: Transaction[bytes], slot: Slot, start: bytes, hashes: Mapping[int, bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        if hashes:
            number, first = next(iter(hashes.items()))
            for name in self._index.find(txn, slot.index, number, first, start):
                data = txn.get(name, db=slot.entries)
                if data is not None:
                    yield name, data
            return
        with txn.cursor(slot.entries) as cursor:
            if cursor.set_range(start) if start else cursor.first():
                yield from cursor


def first_name(prefix: bytes, after: str | None) -> bytes:
    """Return the smallest possible key of a page. It is cut to LARGEST_KEY, because LMDB rejects longer ones."""
    if after is None:
        return prefix[: LARGEST_KEY + 1]
    return max(prefix, after.encode(errors="surrogatepass") + b"\0")[: LARGEST_KEY + 1]
