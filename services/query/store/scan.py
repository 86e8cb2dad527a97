"""Reads pages of keys, in every order. The work for one page is bounded, because it runs on the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from heapq import merge
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from contracts.types.key import LARGEST_KEY
from services.query.store.entry import make_tuple
from services.query.store.index import TIMES, keys_under, newest_window, numbered_keys
from services.query.store.keys import END_START
from services.query.store.packing import hash_at, order, partition, unpack, value_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.index import TermIndex
    from services.query.store.keys import KeyNames

Candidate = tuple[float, bytes, bytes | None]
"""A number and a key, by which a page is ordered, and the packed entry, unless it is known not to be on the page."""

MAX_SKIPPED = 2000
"""The number of keys that a page skips at most before it ends: some milliseconds."""
NO_FILTER: Mapping[str, str] = MappingProxyType({})
PLACE, KEY = itemgetter(0, 1), itemgetter(1)


class Position(NamedTuple):
    """A place in a scan: by a number and then by key. In the order of keys, the number is 0."""

    number: float
    key: str


class Seconds(NamedTuple):
    """The seconds in [since, until) since 1970."""

    since: int
    until: int


class Scan(NamedTuple):
    """The next unexpired keys with a prefix and values of indexed fields, in some partitions.

    Each key comes with its newest window; or, with `time` in milliseconds since 1970, with the window of a windowed
    state that is the newest one to contain it. The order is that of the UTF-8 of the keys. With `time` and `order_by`,
    it is that of the number of this indexed field, and keys without a number are left out. With `silent`, it is that
    of the second of the event time, which is among these.
    """

    partitions: Collection[int]
    limit: int
    prefix: str = ""
    after: Position | None = None
    where: Mapping[str, str] = NO_FILTER
    time: int | None = None
    order_by: str | None = None
    descending: bool = False
    silent: Seconds | None = None


class Page(NamedTuple):
    """Keys with their entries, in the order of the scan. `after` is where the next page starts; None: the last one.

    A page may have fewer keys than the limit, even none, before the last one: the work for one page is bounded.
    `window_start` is that of a scan with `time`; None if no key has such a window.
    """

    items: Sequence[tuple[Position, Entry]]
    after: Position | None
    window_start: int | None = None


@dataclass(frozen=True, slots=True)
class StoreView:
    """What one transaction sees of a store: the slots that have not expired, the newest first.

    `oldest` is the start of the oldest window that has not expired, `every` the time between two windows.
    """

    txn: Transaction[bytes]
    slots: Sequence[Slot]
    names: KeyNames
    index: TermIndex
    paths: Sequence[str]
    oldest: int
    every: int

    def read(self, scan: Scan) -> Page:
        """Return the next page."""
        if scan.time is None:
            return self._page(scan, self._newest(scan))
        after = max(scan.time - self.every, self.oldest - 1)
        for slot in self.slots:
            start = newest_window(self.txn, slot.index, after, scan.time)
            if start is not None:
                return self._page(scan, self._window(scan, slot, start))._replace(window_start=start)
        return Page((), None)

    def _page(self, scan: Scan, candidates: Iterator[Candidate]) -> Page:
        hashes = [(self.paths.index(path), value_hash(text)) for path, text in scan.where.items()]
        partitions, limit, oldest, columns = scan.partitions, scan.limit, self.oldest, self.index.columns_count
        items: list[tuple[Position, Entry]] = []
        skipped, last = 0, None
        for number, key, data in candidates:
            if key == last:  # an earlier window of the key, in an older slot
                continue
            last = key
            if (
                data is not None
                and partition(data) in partitions
                and order(data)[0] >= oldest
                and (not hashes or all(hash_at(data, field) == wanted for field, wanted in hashes))
            ):
                items.append((make_tuple(Position, (number, key.decode())), unpack(data, columns)))
            else:
                skipped += 1
            if len(items) == limit or skipped == MAX_SKIPPED:
                return Page(items, Position(number, key.decode()))
        return Page(items, None)

    def _newest(self, scan: Scan) -> Iterator[Candidate]:
        """Yield the keys that may be on a page of newest windows."""
        if scan.silent is not None:
            after = _place(scan) or (scan.silent.since, b"")
            silent = (self._numbers(scan, slot, TIMES, after, partial(self._find, slot)) for slot in self.slots)
            return merge(*silent, key=PLACE)
        if scan.where and not self.names.has_windows:
            return merge(*(self._values(scan, slot, self.oldest) for slot in self.slots), key=KEY)
        return merge(*(self._keys(scan, slot) for slot in self.slots), key=KEY)

    def _window(self, scan: Scan, slot: Slot, start: int) -> Iterator[Candidate]:
        """Yield the keys that may be on a page of one window."""
        if scan.order_by is not None:
            prefix = self.index.numbers_prefix(self.paths.index(scan.order_by), start)
            return self._numbers(scan, slot, prefix, _place(scan), partial(self._get, slot, start))
        return self._values(scan, slot, start)

    def _keys(self, scan: Scan, slot: Slot) -> Iterator[Candidate]:
        """Yield the keys of a slot with the prefix."""
        prefix = _prefix(scan)
        for key, data in self.names.walk(self.txn, slot, _first(scan)):
            if not key.startswith(prefix):
                return
            yield 0.0, key, data

    def _values(self, scan: Scan, slot: Slot, start: int) -> Iterator[Candidate]:
        """Yield the keys with the prefix that have one of the values, or all keys of a window."""
        heads, prefix = [self.index.present_head(start)], _prefix(scan)
        if scan.where:
            path, text = next(iter(scan.where.items()))
            heads = self.index.value_heads(self.paths.index(path), text, start)
        for key in merge(*(keys_under(self.txn, slot.index, head, _first(scan)) for head in heads)):
            if not key.startswith(prefix):
                return
            yield 0.0, key, self._get(slot, start, key)

    def _numbers(
        self,
        scan: Scan,
        slot: Slot,
        heads: bytes,
        after: tuple[float, bytes] | None,
        find: Callable[[bytes], bytes | None],
    ) -> Iterator[Candidate]:
        """Yield the keys by the numbers that these heads have."""
        prefix = _prefix(scan)
        for number, key in numbered_keys(self.txn, slot.index, heads, after, descending=scan.descending):
            if scan.silent is not None and number >= scan.silent.until:
                return
            yield number, key, find(key) if key.startswith(prefix) else None

    def _get(self, slot: Slot, start: int, key: bytes) -> bytes | None:
        """Return the packed entry of a window of a key; of the only one in a state that is not windowed."""
        return self.txn.get(self.names.name(key, start), db=slot.entries)

    def _find(self, slot: Slot, key: bytes) -> bytes | None:
        """Return the packed entry of the newest window of a key in a slot."""
        found = self.names.newest(self.txn, (slot,), key, self.oldest, END_START)
        return None if found is None else found.data


def _prefix(scan: Scan) -> bytes:
    return scan.prefix.encode(errors="surrogatepass")


def _first(scan: Scan) -> bytes:
    """Return the smallest possible key of a page. It is cut to LARGEST_KEY, because LMDB rejects longer ones."""
    prefix = _prefix(scan)
    if scan.after is None:
        return prefix[: LARGEST_KEY + 1]
    return max(prefix, scan.after.key.encode(errors="surrogatepass") + b"\0")[: LARGEST_KEY + 1]


def _place(scan: Scan) -> tuple[float, bytes] | None:
    """Return the number and the key after which a page starts, cut likewise."""
    after = scan.after
    return None if after is None else (after.number, after.key.encode(errors="surrogatepass")[:LARGEST_KEY])
