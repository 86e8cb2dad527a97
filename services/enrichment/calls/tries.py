"""Trying again: what failed and may succeed later, as often and as long as the policy allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from contracts import PermanentCallError, RetryableCallError
from contracts.errors import CallError
from services.enrichment.calls.backoff import pause

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from contracts import Policy

T = TypeVar("T")


@dataclass(slots=True)
class Effort:
    """What a call has cost so far: the calls made to the API, and the time of them and of the waits between them."""

    calls: int = 0
    seconds: float = 0.0


class Tries:
    """Tries by one policy. `sleep` waits for seconds, `draw` gives a random number between two."""

    def __init__(
        self,
        policy: Policy,
        *,
        sleep: Callable[[float], Awaitable[None]],
        draw: Callable[[float, float], float],
        again: Callable[[], None],
    ) -> None:
        self._policy = policy
        self._deadline = policy.deadline.total_seconds()
        self._sleep = sleep
        self._draw = draw
        self._again = again

    async def made(self, once: Callable[[Effort], Awaitable[T]]) -> T:
        """What `once` gives, at last. Raises AbsentError, or PermanentCallError when there is no more to be tried.

        Most calls succeed at once, and tenacity costs more than all the rest of a call: it comes in when one failed.
        """
        effort = Effort()
        try:
            try:
                return await once(effort)
            except RetryableCallError as failure:
                return await self._retried(once, effort, failure)
        except CallError as failure:
            failure.calls = failure.calls or effort.calls
            raise

    async def _retried(self, once: Callable[[Effort], Awaitable[T]], effort: Effort, failure: RetryableCallError) -> T:
        tried: list[RetryableCallError] = [failure]

        async def attempt() -> T:
            if tried:
                raise tried.pop()
            self._again()
            return await once(effort)

        async def sleep(seconds: float) -> None:
            effort.seconds += seconds
            await self._sleep(seconds)

        def is_over(state: RetryCallState) -> bool:
            late = effort.seconds + state.upcoming_sleep >= self._deadline
            return late or state.attempt_number >= self._policy.attempts

        retrying = AsyncRetrying(
            stop=is_over,
            wait=self._wait,
            retry=retry_if_exception_type(RetryableCallError),
            sleep=sleep,
            after=_let_go,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except RetryableCallError as last:
            raise PermanentCallError(last.reason, response=last.response) from last

    def _wait(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.retry_after if isinstance(failure, RetryableCallError) else None
        return pause(self._policy, state.attempt_number, asked, draw=self._draw)


def _let_go(state: RetryCallState) -> None:
    """Have a failure forget its way here: that holds the response, and in a circle, by what tries again.

    Only the garbage collector would find it, and that comes seldom.
    """
    failure = state.outcome.exception() if state.outcome else None
    if failure is not None:
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
