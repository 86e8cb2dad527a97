"""The latest version returned for each key and window, so that no earlier one is returned after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from services.client.answers import NeverSeen, NoWindow

if TYPE_CHECKING:
    from datetime import datetime

    from services.client.answers import Answer, Order, T

    Place = tuple[str, str, datetime | None]
    """A state, a key, and the start of a window, None for the newest."""

NONE: Order = (0, 0, -1)


class HighWaterMarks:
    """The highest orders of the most recent `keys` keys and windows. With `keys=0` it stores nothing."""

    def __init__(self, keys: int) -> None:
        self._orders: LRUCache[Place, Order] = LRUCache(keys)

    def admits(self, answer: Answer[T], *, by_window: bool = False) -> bool:
        """Return whether the result may be returned, and store its order then. A removed key may start again.

        It is compared with the newest result of its key; with `by_window` with the newest result of its window, for
        the results of older windows. After the expiry of a window, none of its earlier versions is admitted.
        """
        if isinstance(answer, NoWindow):
            return True
        place = answer.state, answer.key, answer.window_start if by_window else None
        if isinstance(answer, NeverSeen):
            self.remove(place)
            return True
        if (order := answer.order) is None:
            return True
        if order < self._orders.get(place, NONE):
            return False
        if self._orders.maxsize:
            self._orders[place] = order
        return True

    def remove(self, place: Place) -> None:
        """Forget a key, or a window of it: its versions may start again."""
        self._orders.pop(place, None)
