"""Repeats operations that fail for a while, with tenacity."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Draw = Callable[[float, float], float]
    """Returns a random number between two."""

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

MOST_DOUBLINGS = 32
"""Beyond this the doubled backoff is over any limit, and under any float's."""


def backoff(failures: int, first_s: float, longest_s: float, draw: Draw) -> float:
    """Return a pause in seconds: exponential backoff with full jitter (AWS Architecture Blog, 2015)."""
    return draw(0.0, min(first_s * 2 ** min(failures - 1, MOST_DOUBLINGS), longest_s))


async def retried(
    once: Callable[[], Awaitable[T]],
    kind: type[E],
    pause: Callable[[int, E], float | None],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Call `once` until it raises no error of this kind, and return its result. Raises the last error.

    `pause` returns the seconds to wait after this many failures, of which it gets the last; None to give up.

    tenacity costs more than a call of an API. Most operations succeed at first, so only a failure starts it.
    """
    try:
        return await once()
    except kind as failure:
        return await _repeated(once, kind, pause, sleep, [failure])


async def _repeated(
    once: Callable[[], Awaitable[T]],
    kind: type[E],
    pause: Callable[[int, E], float | None],
    sleep: Callable[[float], Awaitable[None]],
    failed: list[E],
) -> T:
    """Do what `retried` does, after the first attempt has failed."""

    async def attempt() -> T:
        if failed:
            raise failed.pop()
        return await once()

    def wait(state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        pause_s = pause(state.attempt_number, failure) if isinstance(failure, kind) else None
        return math.inf if pause_s is None else pause_s

    retrying = AsyncRetrying(
        stop=lambda state: state.upcoming_sleep == math.inf,
        wait=wait,
        retry=retry_if_exception_type(kind),
        sleep=sleep,
        after=_drop_references,
        reraise=True,
    )
    return await retrying(attempt)


def _drop_references(state: RetryCallState) -> None:
    """Drop the references of a failure: its traceback keeps the response of a call alive in a reference cycle.

    Only the garbage collector would free it, and that runs rarely.
    """
    failure = state.outcome.exception() if state.outcome else None
    if failure is not None:
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
