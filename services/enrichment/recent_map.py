"""A bounded mapping of recent entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from datetime import timedelta

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class RecentMap(Generic[K, V]):
    """A mapping that drops old entries in two generations, which is cheaper than an order of use.

    An entry stays for at least `age` after it was written, unless `size` others were written since. The map contains
    at most twice `size` entries.
    """

    def __init__(self, size: int, age: timedelta, clock: Callable[[], float]) -> None:
        self._size = size
        self._age = age.total_seconds()
        self._clock = clock
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._since = clock()

    def get(self, key: K) -> V | None:
        """Return the value that was written last, or None."""
        found = self._young.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: K, value: V) -> None:
        """Write a value to the young generation."""
        now = self._clock()
        if len(self._young) >= self._size or now - self._since > self._age:
            self._old = self._young
            self._young = {}
            self._since = now
        self._young[key] = value

    def forget(self, key: K) -> None:
        """Drop a key if it exists."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
