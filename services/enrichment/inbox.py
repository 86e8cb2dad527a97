"""The snapshots that were read and not looked at yet."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue between reading and planning, from which many are taken at a time."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._arrived = asyncio.Event()

    def put(self, items: list[T]) -> None:
        """Add what was read."""
        self._items.extend(items)
        if self._items:
            self._arrived.set()

    async def take(self, most: int) -> list[T]:
        """The oldest items, as soon as there is one."""
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def __len__(self) -> int:
        return len(self._items)
