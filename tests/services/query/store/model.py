"""A reference implementation of a store, by a plain dict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from services.query.store import Entry, Update
    from services.query.store.buckets import TimeBuckets

WindowKey = tuple[str, int]


class Model:
    """The versions of each window of each key; in a state that is not windowed, of the last window of each key."""

    def __init__(self, times: TimeBuckets, every: int, history: int) -> None:
        self.times = times
        self.every = every
        self.history = history
        self.stored: dict[WindowKey, list[Entry]] = {}
        self.positions: dict[int, int] = {}
        self.watermark = 0

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> dict[WindowKey, Entry | None]:
        """Merge the updates; return the last change of each window."""
        updates = list(updates)
        starts = [one.entry.window_start - self.times.lateness for one in updates if one.entry]
        self.advance(max(starts, default=0))
        changes: dict[WindowKey, Entry | None] = {}
        for update in updates:
            if update.entry is None:
                for name in self._names(update.key):
                    if update.window_start in (None, name[1]):
                        del self.stored[name]
                        changes[name] = None
            elif self._is_kept(update.entry.window_start) and self._put(update.key, update.entry):
                changes[update.key, update.entry.window_start] = update.entry
        self.positions.update(positions)
        return changes

    def clear_partition(self, partition: int) -> None:
        """Drop all windows of a partition."""
        self.stored = {name: kept for name, kept in self.stored.items() if kept[-1].partition != partition}
        self.positions.pop(partition, None)

    def advance(self, watermark: int) -> None:
        """Raise the watermark."""
        self.watermark = max(self.watermark, watermark)
        self.stored = {name: kept for name, kept in self.stored.items() if self._is_kept(name[1])}

    def versions(self, key: str, time: int | None = None) -> list[Entry]:
        """Return the versions of the newest window of the key, of those that contain the time."""
        starts = [start for _, start in self._names(key)]
        starts = [start for start in starts if time is None or start <= time < start + self.times.window]
        return self.stored[key, max(starts)] if starts else []

    def get(self, key: str, time: int | None = None) -> Entry | None:
        """Return the last of `versions`."""
        versions = self.versions(key, time)
        return versions[-1] if versions else None

    def windows(self, key: str, start: int | None, end: int | None) -> list[Entry]:
        """Return the windows of the key that start in [start, end), oldest first, without expired ones."""
        found = sorted(at for _, at in self._names(key) if not self.times.is_expired(at, self.watermark))
        kept = [at for at in found if (start is None or at >= start) and (end is None or at < end)]
        return [self.stored[key, at][-1] for at in kept]

    def page(self, prefix: str, where: Mapping[str, str], partitions: Collection[int]) -> list[tuple[str, Entry]]:
        """Return the keys in their order, each with its newest window, without expired ones."""
        keys = sorted({name for name, _ in self.stored}, key=str.encode)
        found = [(key, self.versions(key)[-1]) for key in keys]
        alive = [one for one in found if not self.times.is_expired(one[1].window_start, self.watermark)]
        return [one for one in alive if _passes(*one, prefix, where, partitions)]

    def window_start(self, time: int) -> int | None:
        """Return the newest window that contains the time and has keys."""
        return max((start for _, start in self.stored if time - self.every < start <= time), default=None)

    def window(  # noqa: PLR0913, PLR0917  # all of a query
        self,
        time: int,
        prefix: str,
        where: Mapping[str, str],
        partitions: Collection[int],
        order_by: str | None,
        descending: bool,  # noqa: FBT001
    ) -> list[tuple[str, Entry]]:
        """Return the keys of the newest window that contains the time."""
        found = [(key, kept[-1]) for (key, start), kept in self.stored.items() if start == self.window_start(time)]
        found = [one for one in found if _passes(*one, prefix, where, partitions)]
        if order_by is None:
            return sorted(found, key=lambda one: one[0].encode())
        ordered = [(_field(entry.value, order_by), key.encode(), key, entry) for key, entry in found]
        numbered = [one for one in ordered if type(one[0]) in (int, float)]
        return [one[2:] for one in sorted(numbered, key=lambda one: one[:2], reverse=descending)]

    def _names(self, key: str) -> list[WindowKey]:
        return [name for name in self.stored if name[0] == key]

    def _put(self, key: str, entry: Entry) -> bool:
        """Add the entry if it is newer than its window, or than the last window if there is one of each key."""
        name = key, entry.window_start
        others = [] if self.times.window else [one for one in self._names(key) if one != name]
        versions = self.stored.get(name, [])
        if any(self.stored[one][-1].order >= entry.order for one in (*others, *([name] if versions else []))):
            return False
        for other in others:
            del self.stored[other]
        self.stored[name] = [*versions, entry][-self.history :]
        return True

    def _is_kept(self, start: int) -> bool:
        if self.times.window:
            return start >= self.watermark - self.times.remembered
        return self.times.of(start) >= self.times.oldest(self.watermark)


def _passes(key: str, entry: Entry, prefix: str, where: Mapping[str, str], partitions: Collection[int]) -> bool:
    fits = all(_text(entry.value, path) == value for path, value in where.items())
    return key.startswith(prefix) and entry.partition in partitions and fits


def _text(value: bytes, path: str) -> str | None:
    """Return the text that a filter on the path compares with."""
    found = _field(value, path)
    if found is None or isinstance(found, str):
        return found
    return None if isinstance(found, dict | list) else orjson.dumps(found).decode()


def _field(value: bytes, path: str) -> Any:
    found = orjson.loads(value)
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
