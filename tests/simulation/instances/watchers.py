"""Clients that watch, each by filters of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from services.client.answers import Expired, Found
from services.client.watch import Mark, WatchFilter
from tests.simulation.instances.clients import SimulatedClient
from tests.simulation.instances.job import PLATE
from tests.simulation.instances.reads import FOUND_BY, order_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from random import Random

    from services.client.answers import Update
    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.reader import Answers
    from tests.simulation.instances.requests import Requests

ALL, BY_VALUE, WINDOWS = "all", "by value", "windows"
"""The names of the watchers of all keys, of those with a value, and of all windows of all keys."""
SLOW = 0.1
"""The share of updates after which a client pauses."""
LONGEST_PAUSE_S = 3.0


def watch_filters(state: str, keys: Sequence[str], seed: int, *, has_windows: bool) -> dict[str, WatchFilter]:
    """Return what clients watch: each key, all of them, and those with a value or all windows."""
    prefix = "k" if seed % 3 else ""
    filters = {key: WatchFilter(state, key) for key in keys} | {ALL: WatchFilter(state, prefix=prefix)}
    if has_windows and seed % 2:
        return filters | {WINDOWS: WatchFilter(state, window="all")}
    return filters | {BY_VALUE: WatchFilter(state, where={PLATE: FOUND_BY})}


class Watched(NamedTuple):
    """An update that a watcher got: `order` is None of a key that is gone."""

    watcher: str
    key: str
    at: float
    order: EntryOrder | None
    window_start: datetime | None
    """The window that is gone; None of a key."""
    written: int
    """The number of states that the topic had given the key by then."""
    newest: int
    """The start of the newest window of all keys then."""
    has_expired: bool
    is_open: bool | None
    expired: None = None
    live_only: bool = False
    without: None = None


class Marked(NamedTuple):
    """A mark that a watcher got: it has been sent all records before these positions of the partitions."""

    watcher: str
    after: int
    """The number of updates that all watchers had got."""
    at: float
    positions: Mapping[int, int]
    written: Mapping[str, int]
    """The number of states that the topic had given each key by then."""
    newest: int
    """As in Watched."""


class Watcher:
    """A client that watches some keys, and is slow at times."""

    def __init__(
        self, name: str, filters: Sequence[WatchFilter], requests: Requests, answers: Answers, random: Random
    ) -> None:
        self._name = name
        self._answers = answers
        self._random = random
        self._filters = filters
        self._requests = requests

    async def run(self) -> None:
        """Watch until cancelled."""
        loop, random = asyncio.get_running_loop(), self._random
        client = SimulatedClient(self._requests, random)
        async for update in client.watch_many(*self._filters, marks=True, patience=float("inf")):
            if isinstance(update, Mark):
                self._mark(update, loop.time())
                continue
            self._note(update, loop.time())
            if random.random() < SLOW:
                await asyncio.sleep(random.uniform(0.0, LONGEST_PAUSE_S))

    def _mark(self, mark: Mark, at: float) -> None:
        answers = self._answers
        for positions in mark.positions.values():
            found = {int(partition): position for partition, position in positions.items()}
            marked = Marked(self._name, len(answers.watched), at, found, answers.all_written(), answers.newest)
            answers.marked.append(marked)

    def _note(self, update: Update[Any], at: float) -> None:
        found = update if isinstance(update, Found) else None
        order, gone = (order_of(found), None) if found else (None, update.window_start)
        written, newest = self._answers.written(update.key), self._answers.newest
        has_expired, is_open = isinstance(update, Expired), found.is_open if found else None
        watched = Watched(self._name, update.key, at, order, gone, written, newest, has_expired, is_open)
        self._answers.watched.append(watched)
