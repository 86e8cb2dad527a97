"""What a subscription was told last of each key, so that it is never told anything older, nor the same again."""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from services.query.store.entry import Order


class DeliveredVersions:
    """The order of the last entry told, of so many keys at the most: those told of longest ago are forgotten.

    A key that was forgotten may be told again as it is. It cannot go back: what it is told from never does.
    """

    def __init__(self, most: int, forgotten: Callable[[str], None] | None = None) -> None:
        self._most = most
        self._orders: OrderedDict[str, Order] = OrderedDict()
        self._lives: list[tuple[int, str]] = []
        self._forgotten = forgotten

    def __contains__(self, key: str) -> bool:
        return key in self._orders

    def __len__(self) -> int:
        return len(self._orders)

    def keys(self) -> list[str]:
        """The keys that are remembered."""
        return list(self._orders)

    def told(self, key: str) -> Order | None:
        """What was told last of the key."""
        return self._orders.get(key)

    def advance(self, key: str, order: Order) -> bool:
        """Note that this is told of the key now; False, and nothing is noted, if as much was told before."""
        before = self._orders.get(key)
        if before is not None and order <= before:
            return False
        self._orders[key] = order
        self._orders.move_to_end(key)
        if order[0] and (before is None or before[0] != order[0]):
            self._began(order[0], key)
        if len(self._orders) > self._most:
            self._drop(next(iter(self._orders)))
        return True

    def forget(self, key: str) -> bool:
        """The key is gone, and may come again with any order; whether something was told of it."""
        return self._orders.pop(key, None) is not None

    def clear(self) -> None:
        """Forget all: the client reads anew."""
        for key in self.keys():
            self._drop(key)
        self._lives.clear()

    def ended(self, ended: Callable[[int], bool]) -> Iterator[str]:
        """The keys whose life, of those told of, has ended since the last look."""
        while self._lives and ended(self._lives[0][0]):
            life, key = heappop(self._lives)
            told = self._orders.get(key)
            if told is not None and told[0] == life:
                yield key

    def _began(self, life: int, key: str) -> None:
        """Lives of keys that were forgotten stay until there are too many of them."""
        heappush(self._lives, (life, key))
        if len(self._lives) > 2 * self._most:
            self._lives = sorted((order[0], name) for name, order in self._orders.items() if order[0])

    def _drop(self, key: str) -> None:
        del self._orders[key]
        if self._forgotten:
            self._forgotten(key)
