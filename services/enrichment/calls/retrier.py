"""Retries failed calls as often and as long as the policy allows."""

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
    """The cost of a request so far: the number of calls, and the seconds of the calls and of the pauses between."""

    calls: int = 0
    seconds: float = 0.0


class Retrier:
    """Retries by one policy. `sleep` waits for seconds, `draw` returns a random number between two."""

    def __init__(
        self,
        policy: Policy,
        *,
        sleep: Callable[[float], Awaitable[None]],
        draw: Callable[[float, float], float],
        on_retry: Callable[[], None],
    ) -> None:
        self._policy = policy
        self._deadline = policy.deadline.total_seconds()
        self._sleep = sleep
        self._draw = draw
        self._on_retry = on_retry

    async def call(self, once: Callable[[Effort], Awaitable[T]]) -> T:
        """Call `once` until it succeeds. Raises AbsentError, or PermanentCallError when no attempt is left.

        tenacity costs more than the rest of a call. Most calls succeed at first, so only a failure starts it.
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
        failures: list[RetryableCallError] = [failure]

        async def attempt() -> T:
            if failures:
                raise failures.pop()
            self._on_retry()
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
            after=_drop_references,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except RetryableCallError as last:
            raise PermanentCallError(last.reason, response=last.response) from last

    def _wait(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        requested = failure.retry_after if isinstance(failure, RetryableCallError) else None
        return pause(self._policy, state.attempt_number, requested, draw=self._draw)


def _drop_references(state: RetryCallState) -> None:
    """Drop the references of a failure: its traceback keeps the response alive in a reference cycle.

    Only the garbage collector would free it, and that runs rarely.
    """
    failure = state.outcome.exception() if state.outcome else None
    if failure is not None:
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
