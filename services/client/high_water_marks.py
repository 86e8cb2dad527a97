"""The latest version returned for each key, so that no earlier one is returned after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from services.client.answers import NeverSeen

if TYPE_CHECKING:
    from services.client.answers import Answer, Order, T

NONE: Order = (0, 0, -1)


class HighWaterMarks:
    """The highest order of each key, for the most recent `keys` keys. With `keys=0` it stores nothing."""

    def __init__(self, keys: int) -> None:
        self._orders: LRUCache[tuple[str, str], Order] = LRUCache(keys)

    def of(self, state: str, key: str) -> Order:
        """Return the highest order of the key; NONE without one."""
        return self._orders.get((state, key), NONE)

    def admits(self, answer: Answer[T]) -> bool:
        """Return whether the result may be returned, and store its order then. A removed key may start again.

        After the expiry of a window, none of its earlier versions is admitted.
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
