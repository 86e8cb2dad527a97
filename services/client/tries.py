"""Trying again within a deadline: what failed and may succeed at another instance, or a moment later."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from services.client.errors import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from services.client.answers import T

FIRST_PAUSE_S = 0.02
MOST_PAUSE_S = 1.0
LEAST_TRY_S = 0.05
"""A try with less time than this is none."""


class TryAgain(Exception):
    """This try gave nothing. `kind` is what the call ends with when there is no time left for another."""

    def __init__(self, reason: str, *, after_s: float | None = None, kind: type[NoAnswer] = NoAnswer) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_s = after_s
        self.kind = kind


class Try(NamedTuple):
    """A try: its number from 0, and the seconds that are left."""

    number: int
    left_s: float


class Tries:
    """Makes tries. `clock` gives seconds, `sleep` waits for them, `draw` gives a random number between two."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._draw = draw

    async def made(self, what: str, deadline_s: float, once: Callable[[Try], Awaitable[T]]) -> T:
        """What `once` gives at last. Raises NoAnswer, or a kind of it, and all that `once` raises but TryAgain.

        Most calls succeed at once, and tenacity costs more than all the rest of a call: it comes in when one failed.
        """
        end = self._clock() + deadline_s
        try:
            return await once(Try(0, deadline_s))
        except TryAgain as failure:
            return await self._retried(what, deadline_s, end, once, failure)

    async def _retried(
        self, what: str, deadline_s: float, end: float, once: Callable[[Try], Awaitable[T]], failure: TryAgain
    ) -> T:
        made = 0

        async def attempt() -> T:
            nonlocal made
            made += 1
            if made == 1:
                raise failure
            return await once(Try(made - 1, end - self._clock()))

        retrying = AsyncRetrying(
            stop=lambda state: self._clock() + state.upcoming_sleep + LEAST_TRY_S > end,
            wait=self._pause,
            retry=retry_if_exception_type(TryAgain),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except TryAgain as last:
            raise last.kind(what, deadline_s, made, last.reason) from last

    async def pause(self, failures: int, failure: TryAgain) -> None:
        """Wait as after so many failures, of which this is the last."""
        await self._sleep(self._pause_s(failures, failure))

    def _pause(self, state: RetryCallState) -> float:
        return self._pause_s(state.attempt_number, state.outcome.exception() if state.outcome else None)

    def _pause_s(self, failures: int, failure: BaseException | None) -> float:
        """Full jitter, beside what Retry-After asks for: so not all come back at once."""
        most = min(FIRST_PAUSE_S * 2 ** min(failures, 10), MOST_PAUSE_S)
        asked = failure.after_s if isinstance(failure, TryAgain) else None
        return (asked or 0.0) + self._draw(0.0, most)
