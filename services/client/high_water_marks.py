"""The latest version returned for each key and window: no earlier one follows, and no watch yields one twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from services.client.answers import Found, Left, NeverSeen, NoWindow, Removed

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from services.client.answers import Answer, Order, T, Update

    Place = tuple[str, str, datetime | None]
    """A state, a key, and the start of a window, None for the newest."""

NONE: Order = (0, 0, -1)
MAX_YIELDED_KEYS = 100_000


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


class YieldedVersions:
    """The last version that one watch has yielded of each key; of the states `by_window`, of each window of a key.

    The `high_water_marks` belong to the whole client.
    """

    def __init__(self, high_water_marks: HighWaterMarks, by_window: Collection[str] = ()) -> None:
        self._high_water_marks = high_water_marks
        self._by_window = by_window
        self._last: LRUCache[Place, object] = LRUCache(MAX_YIELDED_KEYS)

    def admits(self, update: Update[T]) -> bool:
        """Return whether to yield the update: after a reconnect an instance may repeat updates."""
        by_window = update.state in self._by_window
        place = update.state, update.key, update.window_start if by_window else None
        new: object = (*update.order, update.is_open is False) if isinstance(update, Found) else type(update)
        last = self._last.get(place)
        if new == last or (isinstance(new, tuple) and isinstance(last, tuple) and new < last):
            return False
        if isinstance(update, Removed):
            self._high_water_marks.remove(place)
        elif not isinstance(update, Left) and not self._high_water_marks.admits(update, by_window=by_window):
            return False
        self._last[place] = new
        return True
