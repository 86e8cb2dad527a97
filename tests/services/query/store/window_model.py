"""A reference implementation of the store of a windowed state, by a plain dict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from tests.services.query.store.model import text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from services.query.store import Entry, Update
    from services.query.store.buckets import TimeBuckets

WindowKey = tuple[str, int]


class WindowModel:
    """The reference: the versions of each window of each key."""

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
        self.watermark = max([self.watermark, *starts])
        self._expire()
        changes: dict[WindowKey, Entry | None] = {}
        for update in updates:
            if update.entry is None:
                for name in [one for one in self.stored if one[0] == update.key]:
                    if update.window_start in (None, name[1]):
                        del self.stored[name]
                        changes[name] = None
            elif self._is_kept(update.entry.window_start):
                name = update.key, update.entry.window_start
                versions = self.stored.get(name, [])
                if not versions or versions[-1].order < update.entry.order:
                    self.stored[name] = [*versions, update.entry][-self.history :]
                    changes[name] = update.entry
        self.positions.update(positions)
        return changes

    def clear_partition(self, partition: int) -> None:
        """Drop all windows of a partition."""
        self.stored = {name: one for name, one in self.stored.items() if one[-1].partition != partition}
        self.positions.pop(partition, None)

    def advance(self, watermark: int) -> None:
        """Raise the watermark."""
        self.watermark = max(self.watermark, watermark)
        self._expire()

    def versions(self, key: str, time: int | None = None) -> list[Entry]:
        """Return the versions of the newest window of the key, of those that contain the time."""
        starts = [start for name, start in self.stored if name == key]
        starts = [one for one in starts if time is None or one <= time < one + self.times.window]
        return self.stored[key, max(starts)] if starts else []

    def get(self, key: str, time: int | None = None) -> Entry | None:
        """Return the last of `versions`."""
        versions = self.versions(key, time)
        return versions[-1] if versions else None

    def windows(self, key: str, start: int | None, end: int | None) -> list[Entry]:
        """Return the windows of the key that start in [start, end), oldest first."""
        found = sorted(one for name, one in self.stored if name == key)
        kept = [one for one in found if (start is None or one >= start) and (end is None or one < end)]
        return [self.stored[key, one][-1] for one in kept]

    def page(self, prefix: str, where: Mapping[str, str], partitions: Collection[int]) -> list[tuple[str, Entry]]:
        """Return the keys in their order, each with its newest window."""
        keys = sorted({name for name, _ in self.stored}, key=str.encode)
        found = [(key, self.versions(key)[-1]) for key in keys]
        return [one for one in found if _passes(*one, prefix, where, partitions)]

    def window_start(self, time: int) -> int | None:
        """Return the newest window that contains the time and has keys."""
        return max((one for _, one in self.stored if time - self.every < one <= time), default=None)

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
        found = [(key, one[-1]) for (key, start), one in self.stored.items() if start == self.window_start(time)]
        found = [one for one in found if _passes(*one, prefix, where, partitions)]
        if order_by is None:
            return sorted(found, key=lambda one: one[0].encode())
        ordered = [(_field(entry.value, order_by), key.encode(), key, entry) for key, entry in found]
        numbered = [one for one in ordered if type(one[0]) in (int, float)]
        return [one[2:] for one in sorted(numbered, key=lambda one: one[:2], reverse=descending)]

    def _expire(self) -> None:
        self.stored = {name: one for name, one in self.stored.items() if self._is_kept(name[1])}

    def _is_kept(self, start: int) -> bool:
        return start >= self.watermark - self.times.remembered


def _passes(key: str, entry: Entry, prefix: str, where: Mapping[str, str], partitions: Collection[int]) -> bool:
    fits = all(text(entry.value, path) == value for path, value in where.items())
    return key.startswith(prefix) and entry.partition in partitions and fits


def _field(value: bytes, path: str) -> Any:
    found = orjson.loads(value)
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
