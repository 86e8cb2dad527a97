"""The windows of a windowed state, as subscriptions choose them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from services.query.push.subscription import ClosedWindows
from services.query.store import Scan
from services.query.store.buckets import milliseconds
from services.query.store.scan import NO_FILTER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contracts.model.named_state import NamedState
    from services.query.push.filter import WindowChoice
    from services.query.push.subscription import StoreScan
    from services.query.store import Entry, Page, Position, Store

FIRST_WINDOWS = 1000
"""The largest number of a key's windows that a subscription to all of them receives first: the newest ones."""


class StateWindows:
    """Reads the windows of a state, and finds which subscriptions a change of a window concerns."""

    def __init__(self, state: NamedState, store: Store) -> None:
        self._store = store
        self._every = milliseconds(state.every or state.window) if state.window is not None else 0
        self._closed_before: int | None = None

    def newest_since_removal(self, key: str, removed: int) -> Entry | None:
        """The entry of the window that is the newest one since this window was removed; None if that was not so."""
        newest = self._store.get(key)
        return None if newest is None or newest.window_start > removed else newest

    def is_newest(self, key: str, window_start: int) -> bool:
        """Whether the key has no newer window."""
        newest = self._store.get(key)
        return newest is None or window_start >= newest.window_start

    def is_chosen(self, choice: WindowChoice, window_start: int, is_newest: Callable[[], bool]) -> bool:
        """Whether a subscription with this choice receives changes of the window. `is_newest` reads the store."""
        if isinstance(choice, int):
            return window_start <= choice < window_start + self._every
        return choice == "all" or is_newest()

    def is_open(self, window_start: int) -> bool:
        """Whether a later version of the window may come."""
        return self._store.is_open(window_start)

    def pop_closed(self) -> ClosedWindows | None:
        """The windows that have closed since the last call, if a key has one of them. The first call returns none."""
        before, end = self._closed_before, self._store.closed_before()
        self._closed_before = end
        if before is None or end <= before:
            return None
        newest = self._store.scan(Scan((), 1, time=end - 1)).window_start
        has_any = end - before > self._every or (newest is not None and newest >= before)
        return ClosedWindows(before, end) if has_any else None

    def closed_entries(self, key: str, choice: WindowChoice, closed: ClosedWindows) -> Sequence[Entry]:
        """The present entries of the chosen windows of a key that have closed, oldest first."""
        found = self._store.windows(key, start=closed.first, end=closed.end, newest_first=True, limit=FIRST_WINDOWS)
        return [
            one
            for one in found[::-1]
            if self.is_chosen(choice, one.window_start, partial(self.is_newest, key, one.window_start))
        ]

    def entry(self, key: str, window_start: int) -> Entry | None:
        """The present entry of one window of the key."""
        found = self._store.windows(key, start=window_start, end=window_start + 1, newest_first=True, limit=1)
        return found[0] if found else None

    def entries(self, key: str, choice: WindowChoice) -> Sequence[Entry]:
        """The present entries of the chosen windows of a key, oldest first."""
        if choice == "newest":
            newest = self._store.get(key)
            return [] if newest is None else [newest]
        start, end = (None, None) if isinstance(choice, str) else (choice - self._every + 1, choice + 1)
        limit = FIRST_WINDOWS if isinstance(choice, str) else 1
        return self._store.windows(key, start=start, end=end, newest_first=True, limit=limit)[::-1]

    def page(self, scan: StoreScan, where: Mapping[str, str]) -> tuple[Sequence[tuple[str, Entry]], Position | None]:
        """The entries of the chosen windows of the next keys, and where to continue; None at the end."""
        choice = scan.subscription.filter.window
        if choice == "all":
            return self._whole_keys(scan, lambda key: self.entries(key, choice))
        found = self._keys(scan, where, None if choice == "newest" else choice)
        return [(at.key, entry) for at, entry in found.items], found.after

    def closed_page(
        self, scan: StoreScan, closed: ClosedWindows
    ) -> tuple[Sequence[tuple[str, Entry]], Position | None]:
        """The entries of the chosen windows of the next keys that have closed, and where to continue."""
        choice = scan.subscription.filter.window
        return self._whole_keys(scan, lambda key: self.closed_entries(key, choice, closed))

    def _whole_keys(
        self, scan: StoreScan, entries: Callable[[str], Sequence[Entry]]
    ) -> tuple[Sequence[tuple[str, Entry]], Position | None]:
        """The entries of the next keys, and where to continue: those of one key, or no more than the scan may find."""
        keys, found = self._keys(scan), list[tuple[str, "Entry"]]()
        for number, (at, _) in enumerate(keys.items):
            of_key = entries(at.key)
            if found and len(found) + len(of_key) > scan.limit:
                return found, keys.items[number - 1][0]
            found += [(at.key, entry) for entry in of_key]
        return found, keys.after

    def _keys(self, scan: StoreScan, where: Mapping[str, str] = NO_FILTER, time: int | None = None) -> Page:
        """The next keys with their newest windows, or with the newest that contains a time."""
        prefix = scan.subscription.filter.prefix
        return self._store.scan(Scan(scan.partitions, scan.limit, prefix, scan.after, where, time))
