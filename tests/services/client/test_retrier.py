"""Retries within a deadline, by a clock that only the pauses advance."""

from __future__ import annotations

import pytest

from services.client.errors import NoAnswerError
from services.client.retrier import MIN_ATTEMPT_S, AttemptFailedError, Retrier
from tests.clock import Clock


async def test_no_attempt_is_made_for_which_too_little_time_is_left() -> None:
    clock, left = Clock(), list[float]()

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    async def once(left_s: float) -> None:
        left.append(left_s)
        raise AttemptFailedError("it is down", after_s=0.3)

    with pytest.raises(NoAnswerError, match="it is down"):
        await Retrier(clock, sleep, lambda low, _: low).run("a key", 0.6 + MIN_ATTEMPT_S / 2, once)
    assert len(left) == 2, "a third one would have half of the least time"
    assert left == pytest.approx([0.6 + MIN_ATTEMPT_S / 2, 0.3 + MIN_ATTEMPT_S / 2])
