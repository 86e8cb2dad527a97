"""Retries failed calls as often and as long as the policy allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from contracts import PermanentCallError, RetryableCallError
from contracts.errors import CallError
from services.enrichment.calls.backoff import pause
from services.runtime.retry import retried

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from contracts import Policy
    from services.runtime.retry import Draw

T = TypeVar("T")


@dataclass(slots=True)
class Effort:
    """The cost of a request so far: the number of calls, and the seconds of the calls and of the pauses between."""

    calls: int = 0
    seconds: float = 0.0


class CallRetrier:
    """Retries by one policy. `sleep` waits for seconds, `draw` returns a random number between two."""

    def __init__(
        self,
        policy: Policy,
        *,
        sleep: Callable[[float], Awaitable[None]],
        draw: Draw,
        on_retry: Callable[[], None],
    ) -> None:
        self._policy = policy
        self._deadline = policy.deadline.total_seconds()
        self._sleep = sleep
        self._draw = draw
        self._on_retry = on_retry

    async def call(self, once: Callable[[Effort], Awaitable[T]]) -> T:
        """Call `once` until it succeeds. Raises AbsentError, or PermanentCallError when no attempt is left."""
        effort = Effort()
        try:
            try:
                return await retried(
                    partial(once, effort), RetryableCallError, partial(self._pause, effort), self._sleep
                )
            except RetryableCallError as last:
                raise PermanentCallError(last.reason, response=last.response) from last
        except CallError as failure:
            failure.calls = failure.calls or effort.calls
            raise

    def _pause(self, effort: Effort, failures: int, failure: RetryableCallError) -> float | None:
        pause_s = pause(self._policy, failures, failure.retry_after, draw=self._draw)
        if failures >= self._policy.attempts or effort.seconds + pause_s >= self._deadline:
            return None
        effort.seconds += pause_s
        self._on_retry()
        return pause_s
