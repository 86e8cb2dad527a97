"""Calls from the thread of the endpoints into the event loop of a process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
PATIENCE_S = 5.0
"""The time for which the endpoints wait for the event loop."""


class LoopCalls:
    """Calls functions in an event loop from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, patience_s: float = PATIENCE_S) -> None:
        self._loop = loop
        self._patience_s = patience_s

    def call(self, function: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """Return what the function returns in the loop; what `otherwise` returns here if the loop hangs."""

        async def called() -> T:
            return function()

        future = asyncio.run_coroutine_threadsafe(called(), self._loop)
        try:
            return future.result(self._patience_s)
        except TimeoutError:
            future.cancel()
            return otherwise()

    def problem(self) -> str:
        """Return what is wrong with a loop that hangs."""
        return f"the event loop did not respond for {self._patience_s:g} s"
