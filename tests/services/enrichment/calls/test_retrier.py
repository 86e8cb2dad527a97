"""The number, the duration and the pauses of retries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts import AbsentError, PermanentCallError, Policy, RetryableCallError
from services.enrichment.calls.retrier import CallRetrier

if TYPE_CHECKING:
    from services.enrichment.calls.retrier import Effort

SECOND = timedelta(seconds=1)


class FlakyCall:
    """A call that fails so often, each try taking so long; the waits are noted."""

    def __init__(self, failures: int, *, seconds: float = 0.0, error: Exception | None = None) -> None:
        self.left = failures
        self.made = 0
        self.retries = 0
        self.waits: list[float] = []
        self._seconds = seconds
        self._error = error or RetryableCallError("down")

    async def once(self, effort: Effort) -> str:
        self.made += 1
        effort.calls += 1
        effort.seconds += self._seconds
        if self.left:
            self.left -= 1
            raise self._error
        return "answer"

    async def by(self, policy: Policy) -> str:
        return await CallRetrier(policy, sleep=self._sleep, draw=lambda _, high: high, on_retry=self._on_retry).call(
            self.once
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    def _on_retry(self) -> None:
        self.retries += 1


async def test_waits_double_until_it_succeeds() -> None:
    one = FlakyCall(3)
    assert await one.by(Policy(backoff=SECOND)) == "answer"
    assert (one.made, one.retries, one.waits) == (4, 3, [1, 2, 4])


async def test_the_attempts_are_limited() -> None:
    one = FlakyCall(99)
    with pytest.raises(PermanentCallError, match="down") as gave_up:
        await one.by(Policy(attempts=5))
    assert (one.made, len(one.waits), gave_up.value.calls) == (5, 4, 5)


async def test_the_deadline_covers_all_attempts_and_pauses() -> None:
    one = FlakyCall(99, seconds=2)
    policy = Policy(timeout=2 * SECOND, deadline=19 * SECOND, attempts=99, backoff=SECOND, max_backoff=4 * SECOND)
    with pytest.raises(PermanentCallError, match="down"):
        await one.by(policy)
    assert (one.made, one.waits) == (4, [1, 2, 4]), "8 s of attempts, 7 s of waits: 4 s more leave none"


async def test_an_api_that_asks_to_wait_beyond_the_deadline_is_not_waited_for() -> None:
    one = FlakyCall(99, error=RetryableCallError("later", 60 * SECOND))
    with pytest.raises(PermanentCallError, match="later"):
        await one.by(Policy(deadline=30 * SECOND))
    assert one.waits == []


@pytest.mark.parametrize("error", [AbsentError("no"), PermanentCallError("never"), KeyError("a bug")])
async def test_other_errors_are_not_retried(error: Exception) -> None:
    one = FlakyCall(99, error=error)
    with pytest.raises(type(error)):
        await one.by(Policy())
    assert one.made == 1
