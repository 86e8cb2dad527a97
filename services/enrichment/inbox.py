"""The snapshots that were read and not looked at yet: where reading is slowed down to the pace of the calls."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue between reading and planning, with a high-water mark, and a low one where reading goes on again."""

    def __init__(self, high: int) -> None:
        self._high = high
        self._low = high // 2
        self._items: deque[T] = deque()
        self._arrived = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def put(self, items: list[T]) -> None:
        """Add what was read."""
        self._items.extend(items)
        if self._items:
            self._arrived.set()
        if len(self._items) >= self._high:
            self._open.clear()

    async def take(self) -> T:
        """The oldest item, as soon as there is one."""
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        item = self._items.popleft()
        if len(self._items) <= self._low:
            self._open.set()
        return item

    async def has_room(self, within: float) -> bool:
        """Whether reading may go on, after waiting that many seconds for it at most.

        The wait keeps a fast flow from pausing partitions all the time, which throws away what Kafka's client queued.
        """
        if not self._open.is_set():
            try:
                await asyncio.wait_for(self._open.wait(), within)
            except TimeoutError:
                return False
        return True

    def __len__(self) -> int:
        return len(self._items)
