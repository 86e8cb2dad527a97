"""Reads pages of silent keys. The work per page is bounded, because it runs on the event loop."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from contracts.types.key import LARGEST_KEY
from services.query.store.packing import unpack
from services.query.store.paging import MAX_SKIPPED
from services.query.store.store import ScanPosition, SilentPage
from services.query.store.window_paging import EntryFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmdb import Transaction

    from services.query.store.entry import Entry
    from services.query.store.environment import Slot
    from services.query.store.event_time_index import EventTimeIndex
    from services.query.store.store import SilentPageRequest


class SilentPager:
    """Reads the pages of a state with these indexed paths, whose entries have so many columns."""

    def __init__(self, paths: Sequence[str], columns: int, index: EventTimeIndex) -> None:
        self._paths = tuple(paths)
        self._columns = columns
        self._index = index

    def page(
        self,
        txn: Transaction[bytes],
        slots: Sequence[Slot],
        request: SilentPageRequest,
        find: Callable[[bytes], bytes | None],
    ) -> SilentPage:
        """Return the page. `find` returns the packed entry of a key; None if it has none that is alive."""
        wanted = EntryFilter(self._paths, request.where, request.partitions)
        since, first, prefix = request.since, b"", request.prefix.encode(errors="surrogatepass")
        if request.after is not None:
            since = int(request.after.number)
            first = (request.after.key.encode(errors="surrogatepass") + b"\0")[: LARGEST_KEY + 1]
        walks = [self._index.walk(txn, slot.index, since, first, request.until) for slot in slots]
        items: list[tuple[ScanPosition, Entry]] = []
        skipped = 0
        for second, name in merge(*walks):
            data = find(name) if name.startswith(prefix) else None
            position = ScanPosition(second, name.decode())
            if data is not None and wanted.passes(data):
                items.append((position, unpack(data, self._columns)))
            else:
                skipped += 1
            if len(items) == request.limit or skipped == MAX_SKIPPED:
                return SilentPage(items, position)
        return SilentPage(items, None)
