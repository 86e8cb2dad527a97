"""Retries within a deadline: an attempt that failed may succeed at another instance, or later."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from services.client.errors import NoAnswerError
from services.runtime.retry import backoff, retried

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from services.client.answers import T
    from services.runtime.retry import Draw

FIRST_PAUSE_S, MAX_PAUSE_S = 0.04, 1.0
"""The limits of the jitter: after the first failure, and after many."""
MIN_ATTEMPT_S = 0.05
"""The least time left for which an attempt is made."""


class AttemptFailedError(Exception):
    """One attempt failed. `kind` is the error that is raised when no time is left for another attempt."""

    def __init__(self, reason: str, *, after_s: float | None = None, kind: type[NoAnswerError] = NoAnswerError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_s = after_s
        self.kind = kind


class Retrier:
    """Runs attempts. `clock` returns seconds, `sleep` waits for them, `draw` returns a random number between two."""

    def __init__(
        self, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]], draw: Draw = random.uniform
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._draw = draw

    async def run(self, what: str, deadline_s: float, once: Callable[[float], Awaitable[T]]) -> T:
        """Return the result of `once`, which gets the seconds left.

        Raises NoAnswerError, or a kind of it, and what else `once` raises.
        """
        end, made = self._clock() + deadline_s, 0

        async def attempt() -> T:
            nonlocal made
            made += 1
            return await once(end - self._clock())

        def pause(failures: int, failure: AttemptFailedError) -> float | None:
            pause_s = self._pause_s(failures, failure)
            return None if self._clock() + pause_s + MIN_ATTEMPT_S > end else pause_s

        try:
            return await retried(attempt, AttemptFailedError, pause, self._sleep)
        except AttemptFailedError as last:
            raise last.kind(what, deadline_s, made, last.reason) from last

    async def pause(self, failures: int, failure: AttemptFailedError) -> None:
        """Wait after this many failures, of which this is the last."""
        await self._sleep(self._pause_s(failures, failure))

    def _pause_s(self, failures: int, failure: AttemptFailedError) -> float:
        """Return Retry-After plus jitter, so that clients do not return at once."""
        return (failure.after_s or 0.0) + backoff(failures, FIRST_PAUSE_S, MAX_PAUSE_S, self._draw)
