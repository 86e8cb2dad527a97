"""A reference implementation of a store, by a plain dict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from services.query.store import Entry, Update
    from services.query.store.buckets import TimeBuckets


class Model:
    """The reference store."""

    def __init__(self, times: TimeBuckets, history: int) -> None:
        self.times = times
        self.history = history
        self.entries: dict[str, list[Entry]] = {}
        self.positions: dict[int, int] = {}
        self.watermark = 0

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> dict[str, Entry | None]:
        updates = list(updates)
        self.watermark = max([self.watermark, *(one.entry.window_start for one in updates if one.entry)])
        oldest = self.times.oldest(self.watermark)
        self.entries = {
            key: kept for key, kept in self.entries.items() if self.times.of(kept[-1].window_start) >= oldest
        }
        changes: dict[str, Entry | None] = {}
        for update in updates:
            if update.entry is None:
                kept = self.entries.get(update.key)
                if kept and update.window_start in (None, kept[-1].window_start):
                    del self.entries[update.key]
                    changes[update.key] = None
            elif self.times.of(update.entry.window_start) >= oldest and self._newer(update.key, update.entry):
                changes[update.key] = update.entry
        self.positions.update(positions)
        return changes

    def clear_partition(self, partition: int) -> None:
        self.entries = {key: kept for key, kept in self.entries.items() if kept[-1].partition != partition}
        self.positions.pop(partition, None)

    def page(self, prefix: str, where: Mapping[str, str], partitions: Collection[int]) -> list[tuple[str, Entry]]:
        return [
            (key, self.entries[key][-1])
            for key in sorted(self.entries, key=str.encode)
            if key.startswith(prefix)
            and self.entries[key][-1].partition in partitions
            and not self.times.is_expired(self.entries[key][-1].window_start, self.watermark)
            and all(text(self.entries[key][-1].value, path) == value for path, value in where.items())
        ]

    def _newer(self, key: str, entry: Entry) -> bool:
        kept = self.entries.get(key)
        if kept and kept[-1].order >= entry.order:
            return False
        same = kept if kept and kept[-1].window_start == entry.window_start else []
        self.entries[key] = [*same, entry][-self.history :]
        return True


def text(value: bytes, path: str) -> str | None:
    """Return the text that a filter on the path compares with."""
    found = orjson.loads(value)
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, dict | list):
        return None
    return orjson.dumps(found).decode()
