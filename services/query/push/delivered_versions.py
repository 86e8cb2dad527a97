"""The last version of each key that a subscription received, so that it receives nothing older and nothing twice."""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from services.query.lookup.version_reference import DeliveredOrder

DeliveredKey = str | tuple[str, int | None]
"""A key; or a window of a key, for a subscription to all windows."""


class DeliveredVersions:
    """The order of the last entry of each key, of at most `limit` keys: the least recently delivered are forgotten.

    A forgotten key may be delivered again. It cannot go back, for the store that it is read from never does.
    """

    def __init__(self, limit: int, on_forget: Callable[[DeliveredKey], None] | None = None) -> None:
        self._limit = limit
        self._orders: OrderedDict[DeliveredKey, DeliveredOrder] = OrderedDict()
        self._windows: list[tuple[int, DeliveredKey]] = []
        self._on_forget = on_forget

    def __contains__(self, key: DeliveredKey) -> bool:
        return key in self._orders

    def __len__(self) -> int:
        return len(self._orders)

    def keys(self) -> list[DeliveredKey]:
        """The keys that are remembered."""
        return list(self._orders)

    def get(self, key: DeliveredKey) -> DeliveredOrder | None:
        """The order of the last version of the key."""
        return self._orders.get(key)

    def advance(self, key: DeliveredKey, order: DeliveredOrder) -> bool:
        """Record a version; returns False, and records nothing, if it is not newer than the last one."""
        before = self._orders.get(key)
        if before is not None and order <= before:
            return False
        self._orders[key] = order
        self._orders.move_to_end(key)
        if order[0] and (before is None or before[0] != order[0]):
            self._add_window(order[0], key)
        if len(self._orders) > self._limit:
            self._drop(next(iter(self._orders)))
        return True

    def forget(self, key: DeliveredKey) -> bool:
        """Forget a key that is gone, and may reappear with any order; returns whether it was remembered."""
        return self._orders.pop(key, None) is not None

    def clear(self) -> None:
        """Forget all keys: the client reads anew."""
        for key in self.keys():
            self._drop(key)
        self._windows.clear()

    def pop_expired(self, is_expired: Callable[[int], bool]) -> Iterator[DeliveredKey]:
        """The keys whose window has expired since the last call."""
        while self._windows and is_expired(self._windows[0][0]):
            start, key = heappop(self._windows)
            order = self._orders.get(key)
            if order is not None and order[0] == start:
                yield key

    def _add_window(self, start: int, key: DeliveredKey) -> None:
        """Windows of forgotten keys stay until there are too many of them."""
        heappush(self._windows, (start, key))
        if len(self._windows) > 2 * self._limit:
            self._windows = sorted((order[0], name) for name, order in self._orders.items() if order[0])

    def _drop(self, key: DeliveredKey) -> None:
        del self._orders[key]
        if self._on_forget:
            self._on_forget(key)
