"""The queue between reading and planning."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class RecordQueue(Generic[T]):
    """A queue from which the consumer takes many items at once."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._arrived = asyncio.Event()

    def put(self, items: list[T]) -> None:
        """Append items."""
        self._items.extend(items)
        if self._items:
            self._arrived.set()

    async def take(self, most: int) -> list[T]:
        """Remove and return the oldest items, at most this many; wait until there is one."""
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def __len__(self) -> int:
        return len(self._items)
