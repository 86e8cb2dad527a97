"""Retries within a deadline: an attempt that failed may succeed at another instance, or later."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from services.client.errors import NoAnswerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from services.client.answers import T

FIRST_PAUSE_S = 0.02
MAX_PAUSE_S = 1.0
MIN_ATTEMPT_S = 0.05
"""The least time left for which an attempt is made."""


class AttemptFailedError(Exception):
    """One attempt failed. `kind` is the error that is raised when no time is left for another attempt."""

    def __init__(self, reason: str, *, after_s: float | None = None, kind: type[NoAnswerError] = NoAnswerError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_s = after_s
        self.kind = kind


class Attempt(NamedTuple):
    """One attempt: its number from 0, and the seconds left."""

    number: int
    left_s: float


class Retrier:
    """Runs attempts. `clock` returns seconds, `sleep` waits for them, `draw` returns a random number between two."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._draw = draw

    async def run(self, what: str, deadline_s: float, once: Callable[[Attempt], Awaitable[T]]) -> T:
        """Return the result of `once`. Raises NoAnswerError, or a kind of it, and what else `once` raises.

        Most calls succeed at once, and tenacity costs more than all the rest of a call: it comes in when one failed.
        """
        end = self._clock() + deadline_s
        try:
            return await once(Attempt(0, deadline_s))
        except AttemptFailedError as failure:
            return await self._retried(what, deadline_s, end, once, failure)

    async def _retried(
        self,
        what: str,
        deadline_s: float,
        end: float,
        once: Callable[[Attempt], Awaitable[T]],
        failure: AttemptFailedError,
    ) -> T:
        made = 0

        async def attempt() -> T:
            nonlocal made
            made += 1
            if made == 1:
                raise failure
            return await once(Attempt(made - 1, end - self._clock()))

        retrying = AsyncRetrying(
            stop=lambda state: self._clock() + state.upcoming_sleep + MIN_ATTEMPT_S > end,
            wait=self._pause,
            retry=retry_if_exception_type(AttemptFailedError),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except AttemptFailedError as last:
            raise last.kind(what, deadline_s, made, last.reason) from last

    async def pause(self, failures: int, failure: AttemptFailedError) -> None:
        """Wait after this many failures, of which this is the last."""
        await self._sleep(self._pause_s(failures, failure))

    def _pause(self, state: RetryCallState) -> float:
        return self._pause_s(state.attempt_number, state.outcome.exception() if state.outcome else None)

    def _pause_s(self, failures: int, failure: BaseException | None) -> float:
        """Return Retry-After plus full jitter, so that clients do not return at once."""
        most = min(FIRST_PAUSE_S * 2 ** min(failures, 10), MAX_PAUSE_S)
        retry_after = failure.after_s if isinstance(failure, AttemptFailedError) else None
        return (retry_after or 0.0) + self._draw(0.0, most)
