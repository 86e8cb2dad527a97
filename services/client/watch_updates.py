"""The updates of a watch, and the rule that none is delivered twice or after a later one."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from cachetools import LRUCache

from services.client.answers import Expired, Found, NeverSeen, T, found, window_start

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping
    from datetime import datetime

    from services.client.high_water_marks import HighWaterMarks

MAX_KEYS = 100_000


@dataclass(frozen=True, slots=True)
class Removed:
    """A tombstone removed the key, or this window of it. It may return."""

    state: str
    key: str
    window_start: datetime | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """The key, or this window of it, no longer matches the filter of the watch. It may return."""

    state: str
    key: str
    window_start: datetime | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """The lag of this watch behind the instance, and of the instance behind the topics.

    So many keys wait for the watch, the oldest of them for so long. `conflated` is how many changes it never saw,
    because a later one of the same key took their place. `lag` has the records still to be read, by state; `positions`
    up to where all has come, by state and partition, when all has.
    """

    waiting: int
    conflated: int
    oldest: timedelta
    lag: Mapping[str, int]
    positions: Mapping[str, Mapping[str, int]]


Update: TypeAlias = Found[T] | NeverSeen | Expired | Removed | Left
"""A change of a key."""
GONE: Mapping[str, Callable[[str, str, Mapping[str, Any]], Update[Any]]] = {
    "never_seen": NeverSeen,
    "expired": Expired,
    "removed": lambda state, key, facts: Removed(state, key, window_start(facts)),
    "left": lambda state, key, facts: Left(state, key, window_start(facts)),
}
STATE = "state"
MARK = "mark"


def update(kind: str, body: Mapping[str, Any], read: Callable[[Any], T]) -> Update[T]:
    """Return the update of an event. Raises KeyError, TypeError or ValueError for an invalid one."""
    return found(body, read) if kind == STATE else GONE[kind](body["state"], body["key"], body)


def mark(body: Mapping[str, Any]) -> Mark:
    """Return the mark of an event. Raises the same."""
    states = body["states"]
    return Mark(
        waiting=int(body["waiting"]),
        conflated=int(body["conflated"]),
        oldest=timedelta(milliseconds=body["oldest_ms"]),
        lag={name: int(state["lag"]["records"]) for name, state in states.items()},
        positions={name: state["positions"] for name, state in states.items() if "positions" in state},
    )


class YieldedVersions:
    """The last version that one watch has delivered of each key; of the states `by_window`, of each window of a key.

    The `high_water_marks` belong to the whole client.
    """

    def __init__(self, high_water_marks: HighWaterMarks, by_window: Collection[str] = ()) -> None:
        self._high_water_marks = high_water_marks
        self._by_window = by_window
        self._last: LRUCache[tuple[str, str, datetime | None], object] = LRUCache(MAX_KEYS)

    async def filter(
        self, updates: AsyncGenerator[Update[Any] | Mark, None]
    ) -> AsyncGenerator[Update[Any] | Mark, None]:
        """Yield all marks, and the updates that are admitted."""
        async with aclosing(updates):
            async for item in updates:
                if isinstance(item, Mark) or self.admits(item):
                    yield item

    def admits(self, update: Update[Any]) -> bool:
        """Return whether to deliver the update: after a reconnect an instance may repeat updates."""
        by_window = update.state in self._by_window
        place = update.state, update.key, update.window_start if by_window else None
        new: object = (*update.order, update.is_open is False) if isinstance(update, Found) else type(update)
        last = self._last.get(place)
        if new == last or (isinstance(new, tuple) and isinstance(last, tuple) and new < last):
            return False
        if isinstance(update, Left):
            self._last[place] = new
            return True
        if isinstance(update, Removed):
            self._high_water_marks.remove(place)
        elif not self._high_water_marks.admits(update, by_window=by_window):
            return False
        self._last[place] = new
        return True
