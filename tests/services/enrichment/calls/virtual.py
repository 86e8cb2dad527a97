"""An event loop whose time jumps to the next thing that is due: minutes pass in milliseconds, and in order."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

from services.enrichment.calls.assembly import Runtime
from tests.services.enrichment.calls.time import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Draw = Callable[[float, float], float]

T = TypeVar("T")
TICK_S = 1e-7
"""Time passes by so much at the least, as it does in reality: what is due a rounding error from now would never be."""

LONGEST_S = 2 * 3600.0
"""The time of the loop after which a scenario counts as one that never ends."""


class Jump(selectors.DefaultSelector):
    """Waits by moving the clock. Where nothing is due any more, nothing would ever happen."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("all wait, and nothing is due")
        if self.now > LONGEST_S:
            raise RuntimeError("it goes on for hours")
        self.now += max(timeout, TICK_S)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """No I/O happens in it."""

    def __init__(self) -> None:
        self._jump = Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


def virtually(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a scenario in a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def longest(_: float, high: float) -> float:
    """The longest of all random waits."""
    return high


def outside(draw: Draw = longest) -> Runtime:
    """The runtime of calls in a virtual event loop: its time, and the longest or the given random pauses."""
    return Runtime(clock=asyncio.get_running_loop().time, now=lambda: EPOCH, draw=draw)
