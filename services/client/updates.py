"""What a watch tells, and the rule that it tells nothing twice and nothing that is older than what it told."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from cachetools import LRUCache

from services.client.answers import Expired, Found, NeverSeen, T, found

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from services.client.highest import Highest

REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Removed:
    """The key was removed by a record without value. It may come again."""

    state: str
    key: str


@dataclass(frozen=True, slots=True)
class Left:
    """The key has not the values any more that the watch asks for. It may come again."""

    state: str
    key: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far this watch is behind the instance, and the instance behind the topics.

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
"""What has become of a key."""
GONE: Mapping[str, Callable[[str, str, Mapping[str, Any]], Update[Any]]] = {
    "never_seen": NeverSeen,
    "expired": Expired,
    "removed": lambda state, key, _: Removed(state, key),
    "left": lambda state, key, _: Left(state, key),
}
STATE = "state"
MARK = "mark"


def update(kind: str, body: Mapping[str, Any], read: Callable[[Any], T]) -> Update[T]:
    """What an event tells. Raises KeyError, TypeError or ValueError for what is none."""
    return found(body, read) if kind == STATE else GONE[kind](body["state"], body["key"], body)


def mark(body: Mapping[str, Any]) -> Mark:
    """How far a watch is behind. Raises the same."""
    states = body["states"]
    return Mark(
        waiting=int(body["waiting"]),
        conflated=int(body["conflated"]),
        oldest=timedelta(milliseconds=body["oldest_ms"]),
        lag={name: int(one["lag"]["records"]) for name, one in states.items()},
        positions={name: one["positions"] for name, one in states.items() if "positions" in one},
    )


class Shown:
    """What one watch has told of its keys. `highest` is what the client has shown altogether."""

    def __init__(self, highest: Highest) -> None:
        self._highest = highest
        self._last: LRUCache[tuple[str, str], object] = LRUCache(REMEMBERED)

    async def new(self, told: AsyncGenerator[Update[Any] | Mark, None]) -> AsyncGenerator[Update[Any] | Mark, None]:
        """All marks, and the updates that are admitted."""
        async with aclosing(told):
            async for one in told:
                if isinstance(one, Mark) or self.admits(one):
                    yield one

    def admits(self, told: Update[Any]) -> bool:
        """Whether it is to be told. After a break an instance tells again what it does not know to be told."""
        place = told.state, told.key
        new: object = told.order if isinstance(told, Found) else type(told)
        last = self._last.get(place)
        if new == last or (isinstance(told, Found) and isinstance(last, tuple) and told.order < last):
            return False
        if isinstance(told, Left):
            self._last[place] = new
            return True
        if not self._highest.admits(NeverSeen(told.state, told.key, {}) if isinstance(told, Removed) else told):
            return False
        self._last[place] = new
        return True
