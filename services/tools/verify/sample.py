"""A sample of keys that several processes choose equally without communication."""

from __future__ import annotations

import hashlib
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def rank(key: str, seed: str) -> str:
    """Return the digest by which keys are chosen. Spark's `md5` returns the same."""
    return hashlib.md5(f"{seed}{key}".encode(), usedforsecurity=False).hexdigest()


class KeySample:
    """The keys with the largest ranks among those offered: a random sample of a fixed size.

    The sample of a union is the sample of the union of samples.
    """

    def __init__(self, size: int, seed: str) -> None:
        self.size = size
        self.seed = seed
        self._heap: list[tuple[str, str]] = []
        self._keys: set[str] = set()

    @property
    def keys(self) -> frozenset[str]:
        """The sample of the keys that were offered."""
        return frozenset(self._keys)

    def offer(self, key: str) -> bool:
        """Return whether a key is in the sample. It may leave the sample later, and does not return."""
        if key in self._keys:
            return True
        ranked = rank(key, self.seed), key
        if len(self._heap) < self.size:
            heappush(self._heap, ranked)
        elif self._heap and ranked > self._heap[0]:
            self._keys.discard(heapreplace(self._heap, ranked)[1])
        else:
            return False
        self._keys.add(key)
        return True

    def offer_all(self, keys: Iterable[str]) -> None:
        """Offer many keys."""
        for key in keys:
            self.offer(key)


class NamedKeys:
    """The keys that a user names, instead of a sample."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = frozenset(keys)

    def offer(self, key: str) -> bool:
        """Return whether the key is among them."""
        return key in self.keys
