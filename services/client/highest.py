"""The latest that was shown of each key, so that nothing earlier is shown after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from services.client.answers import NeverSeen

if TYPE_CHECKING:
    from services.client.answers import Answer, Order, T

NONE: Order = (0, 0, -1)


class Highest:
    """The highest order shown of each key, of so many keys that were asked last. With `keys=0` it remembers nothing."""

    def __init__(self, keys: int) -> None:
        self._orders: LRUCache[tuple[str, str], Order] = LRUCache(keys)

    def of(self, state: str, key: str) -> Order:
        """The highest order shown of the key; NONE where nothing was."""
        return self._orders.get((state, key), NONE)

    def admits(self, answer: Answer[T]) -> bool:
        """Whether the answer may be shown; it is remembered then. A key that was removed may begin anew.

        An ended life was shown up to its last version: nothing before that comes after it.
        """
        place = answer.state, answer.key
        if isinstance(answer, NeverSeen):
            self._orders.pop(place, None)
            return True
        if (order := answer.order) is None:
            return True
        if order < self.of(*place):
            return False
        if self._orders.maxsize:
            self._orders[place] = order
        return True
