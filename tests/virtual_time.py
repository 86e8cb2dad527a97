"""An event loop whose time passes only when there is nothing else to do: tests of pauses need none."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from selectors import SelectorKey


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Sleeping takes no time. Nothing in it may wait for another thread."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    @override
    def time(self) -> float:
        return self._virtual.now

    def sleep(self, seconds: float) -> None:
        """Let time pass, as a call that blocks the loop does."""
        self._virtual.now += seconds


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everything waits for what never happens"
            self.now += timeout
        return found
