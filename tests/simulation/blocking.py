"""Calls of blocking functions in virtual time: each runs in a greenlet, which lets others run while it waits."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork

T = TypeVar("T")


class ProcessTime:
    """The time of a process. Implements Time."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop

    def time(self) -> float:
        """See `Time.time`."""
        return self._loop.time()

    def sleep(self, seconds: float) -> None:
        """See `Time.sleep`. Outside of a blocking call it blocks the event loop, and with it all processes."""
        caller = getcurrent()
        if caller.parent is None:
            self._loop.sleep(seconds)
        else:
            self._loop.call_later(seconds, caller.switch)
            caller.parent.switch()


def is_blocking_call() -> bool:
    """Return whether a blocking call runs, so that others can run while it waits."""
    return getcurrent().parent is not None


class ModelCalls:
    """Calls functions one after the other, as a thread does. Implements BlockingCalls.

    With topics, each call waits until something happens there or in the process, for some seconds at most: the product
    would poll 20 times a second.
    """

    def __init__(self, network: ProcessNetwork, *topics: str) -> None:
        self._network = network
        self._topics = topics
        self._last: asyncio.Task[None] | None = None

    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """See `BlockingCalls.call`."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        self._last = loop.create_task(self._call(self._last, function, result))
        return result

    async def _call(
        self, former: asyncio.Task[None] | None, function: Callable[[], T], result: asyncio.Future[T]
    ) -> None:
        if former is not None and not former.done():
            await asyncio.wait([former])
        if self._topics:
            await self._network.pause(*self._topics)
        else:
            self._network.wake()
            await asyncio.sleep(self._network.latency_s())
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        blocking = greenlet(partial(_settle, function, result, ended))
        blocking.gr_context = copy_context()
        loop.call_soon(blocking.switch)
        await ended


def _settle(function: Callable[[], T], result: asyncio.Future[T], ended: asyncio.Future[None]) -> None:
    try:
        found = function()
    except Exception as error:  # noqa: BLE001 (raised by the caller)
        if not result.done():
            result.set_exception(error)
    else:
        if not result.done():
            result.set_result(found)
    if not ended.done():
        ended.set_result(None)
