"""A bounded memory of what happened lately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from datetime import timedelta

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class Memory(Generic[K, V]):
    """A mapping that forgets in two generations, which costs less than an order of use.

    An entry is kept for at least `age` after it was written, unless `size` others were written since. No more than
    twice `size` entries are held.
    """

    def __init__(self, size: int, age: timedelta, clock: Callable[[], float]) -> None:
        self._size = size
        self._age = age.total_seconds()
        self._clock = clock
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._since = clock()

    def get(self, key: K) -> V | None:
        """The value that was written last, or None."""
        found = self._young.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: K, value: V) -> None:
        """Write a value; it is young again."""
        now = self._clock()
        if len(self._young) >= self._size or now - self._since > self._age:
            self._old = self._young
            self._young = {}
            self._since = now
        self._young[key] = value

    def forget(self, key: K) -> None:
        """Drop a key, if it is there."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
