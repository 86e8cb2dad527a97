"""Reads names from the stores as a GET does, and pages of names for scans."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import orjson

from services.query.lookup.answer_encoder import AnswerEncoder
from services.query.lookup.decision import iso
from services.query.push.event import Answer, EventKind, Present
from services.query.push.names import Name
from services.query.push.state_windows import StateWindows
from services.query.push.stream_items import BATCH_BYTES, Delivery
from services.query.store import Entry, Scan, Seconds
from services.query.store.index import FIRST_SECOND
from services.query.store.scan import NO_FILTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from services.query.dependencies import Dependencies
    from services.query.push.filter import WindowChoice
    from services.query.push.subscription import StoreScan, Subscription
    from services.query.store import EntryOrder, Position

PAGE_MAX = 100
"""The largest number of keys per page: about a millisecond, in which the event loop does nothing else."""
PAGE_BYTES = 256 * 1024
"""About how many bytes a page has."""
CACHE_BYTES = 4 * 1024 * 1024
"""About how many bytes of values and answers are cached for other clients."""
ENTRY_BYTES = 512
"""The cost of a cached entry without its value and answer."""
UNREAD = Present(Entry(0, 0, 0, 0, 0, 0, b""), is_closed=False)
"""In place of what the cache does not have."""


class NameReader:
    """What readers see now. An entry is read once for all clients, until its key changes or `expire` is called."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._stores = dependencies.stores
        instance = dependencies.settings.instance
        self._encoders = {
            name: AnswerEncoder(state, instance, self._stores[name]) for name, state in dependencies.states.items()
        }
        self.windows = {
            name: StateWindows(state, self._stores[name])
            for name, state in dependencies.states.items()
            if state.window is not None
        }
        self._cache: dict[tuple[str, str, int | None] | tuple[Name, WindowChoice], Present | None] = {}
        self._cached_bytes = 0

    def read(self, name: Name, choice: WindowChoice) -> Present | None:
        """What readers see of the name, as a subscription chooses windows."""
        place = name if choice == "newest" else (name, choice)
        present = self._cache.get(place, UNREAD)
        if present is UNREAD:
            if self._cached_bytes >= CACHE_BYTES:
                self.expire()
            present = self._cache[place] = self._counted(self._read(name, choice))
        return present

    def answer(self, name: Name, present: Present) -> Answer:
        """The answer that a GET returns at the moment when a client is about to receive it."""
        if present.answer is None:
            entry = present.entry
            status = self._dependencies.routing.partition_status(name.state, entry.partition)
            encoder, now = self._encoders[name.state], self._dependencies.now()
            body = encoder.encode(name.key, entry, status, now, is_closed=present.is_closed)
            present.answer = Answer(EventKind.STATE, body, present.tag)
        return present.answer

    def gone(self, kind: EventKind, name: Name, present: Present | None) -> Answer:
        """The answer about a name without a value: state and key, and in a windowed state the window."""
        facts: dict[str, str | None] = {"state": name.state, "key": name.key}
        if name.state in self.windows:
            start = name.window_start if present is None else present.entry.window_start
            facts["window_start"] = None if start is None else iso(start)
        return Answer(kind, orjson.dumps(facts))

    def cache(self, name: Name, entry: Entry) -> None:
        """Cache the entry of a state that is not windowed, as readers see it now."""
        if self._cached_bytes < CACHE_BYTES:
            self._cache[name] = self._counted(Present(entry, is_closed=False))

    def forget(self, state: str, key: str, window_start: int | None) -> None:
        """Read the name again: it has changed. In a windowed state, so may have the newest window."""
        if self._cache and window_start is None:
            self._cache.pop((state, key, None), None)
        elif self._cache:
            self._cache.clear()

    def expire(self) -> None:
        """Read all keys again: an answer has an age."""
        self._cache.clear()
        self._cached_bytes = 0

    def oldest_window(self, state: str) -> int:
        """The start of the oldest window that has not expired."""
        return self._stores[state].oldest_live_window()

    def stored_offset(self, state: str, partition: int) -> int:
        """The offset of the last record of the partition that the store has; -1 if it has none."""
        return (self._stores[state].position(partition) or 0) - 1

    def presents(self, subscription: Subscription, key: str) -> list[Present]:
        """The present entries of the key that the subscription receives, oldest first."""
        state = subscription.filter.state
        if (windows := self.windows.get(state)) is not None:
            entries = windows.entries(key, subscription.filter.window)
        else:
            entry = self._stores[state].get(key)
            entries = [] if entry is None else [entry]
        return [self.present_of(state, entry) for entry in entries]

    def earlier_versions(self, subscription: Subscription, key: str, at: float) -> Iterator[list[Delivery]]:
        """The earlier versions kept of a key that the client does not have; they count as delivered at `at`.

        Only of its newest window. A later version follows each of them, also in a window that has closed since.
        Each step reads about as many as are written at once, and skips those that are not kept any more.
        """
        state = subscription.filter.state
        if subscription.filter.window != "newest" or subscription.filter.silent_for is not None:
            return iter(())
        earlier = [Present(entry, is_closed=False) for entry in self._stores[state].versions(key)[:-1]]
        wanted = [present for present in earlier if subscription.record_state(key, present.order)]
        orders = deque(present.entry.order for present in wanted)
        next_ones = partial(self._next_versions, subscription, Name(state, key), orders, at)
        return iter(next_ones, [])

    def _next_versions(
        self, subscription: Subscription, name: Name, orders: deque[EntryOrder], at: float
    ) -> list[Delivery]:
        """Take the first of these versions, as many as are written at once."""
        found, store = list[Delivery](), self._stores[name.state]
        for entry in store.earlier_versions(name.key, orders[0], BATCH_BYTES)[:PAGE_MAX] if orders else ():
            while orders and orders[0] < entry.order:
                orders.popleft()
            if orders and orders[0] == entry.order:
                orders.popleft()
                answer = self.answer(name, Present(entry, is_closed=False))
                found.append(Delivery(answer, [subscription.name], at))
        return found

    def page(self, scan: StoreScan) -> Sequence[tuple[str, Entry]]:
        """The next entries that the subscription may receive; the place of the scan moves on."""
        items, scan.after = self._page(scan)
        size, keys = sum(len(entry.value) for _, entry in items), len({key for key, _ in items})
        scan.limit = max(1, min(PAGE_MAX, PAGE_BYTES * keys // (size or 1)))
        scan.is_done = scan.after is None
        return items

    def has_silent(self, subscription: Subscription, partitions: Sequence[int], seconds: Seconds) -> bool:
        """Whether some key may have become silent in these seconds."""
        wanted = subscription.filter
        page = self._stores[wanted.state].scan(Scan(partitions, 1, wanted.prefix, silent=seconds))
        return bool(page.items) or page.after is not None

    def _page(self, scan: StoreScan) -> tuple[Sequence[tuple[str, Entry]], Position | None]:
        wanted, silent, where = scan.subscription.filter, None, NO_FILTER
        windows = self.windows.get(wanted.state)
        if windows is not None and scan.closed is not None:
            return windows.closed_page(scan, scan.closed)
        if wanted.silent_for is not None and scan.since is None:
            first = FIRST_SECOND if scan.silent_since is None else scan.silent_since
            silent = Seconds(first, scan.subscription.silent_until)
        elif scan.since is None:
            where = dict(wanted.where)
        if windows is not None and silent is None:
            return windows.page(scan, where)
        page = self._stores[wanted.state].scan(
            Scan(scan.partitions, scan.limit, wanted.prefix, scan.after, where, silent=silent)
        )
        return [(position.key, entry) for position, entry in page.items], page.after

    def _counted(self, present: Present | None) -> Present | None:
        self._cached_bytes += ENTRY_BYTES + (0 if present is None else 2 * len(present.entry.value))
        return present

    def _read(self, name: Name, choice: WindowChoice) -> Present | None:
        windows = self.windows.get(name.state)
        if windows is None or choice == "newest":
            entry = self._stores[name.state].get(name.key)
        elif choice == "all":
            entry = None if name.window_start is None else windows.entry(name.key, name.window_start)
        else:
            entry = next(iter(windows.entries(name.key, choice)), None)
        return None if entry is None else self.present_of(name.state, entry)

    def present_of(self, state: str, entry: Entry) -> Present:
        """The entry as readers see it now."""
        windows = self.windows.get(state)
        return Present(entry, is_closed=windows is not None and not windows.is_open(entry.window_start))
