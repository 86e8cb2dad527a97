"""Calls blocking functions from an event loop, one after the other, in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


class BlockingCalls(Protocol):
    """Calls functions that block."""

    def call(self, function: Callable[[], T]) -> Awaitable[T]:
        """Call a function: what it returns or raises is the result. A call that is cancelled goes on."""


class CallThread(BlockingCalls):
    """A thread that does not delay the end of the process: a client of Kafka may block while the broker is away."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @override
    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function after all earlier ones."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def called() -> None:
            try:
                settle = partial(_succeed, future, function())
            except Exception as error:  # noqa: BLE001 (raised by the caller)
                settle = partial(_fail, future, error)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle)

        self._calls.put(called)
        return future

    def close(self) -> None:
        """End the thread after the calls that wait."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
