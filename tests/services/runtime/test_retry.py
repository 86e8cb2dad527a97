"""Operations that are repeated after failures."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime import retry
from services.runtime.retry import backoff, retried


class DownError(Exception):
    """A failure that passes, with a number."""


class Flaky:
    """An operation that fails so often."""

    def __init__(self, failures: int, error: type[Exception] = DownError) -> None:
        self.failures = failures
        self.made = 0
        self.waits: list[float] = []
        self.paused: list[tuple[int, str]] = []
        self._error = error

    async def once(self) -> str:
        self.made += 1
        if self.made <= self.failures:
            raise self._error(self.made)
        return "answer"

    def pause(self, failures: int, failure: DownError) -> float | None:
        self.paused.append((failures, str(failure)))
        return None if failures == 4 else float(failures)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def run(self) -> str:
        return await retried(self.once, DownError, self.pause, self.sleep)


async def test_an_operation_that_succeeds_at_once_does_not_pay_for_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(retry, "AsyncRetrying")
    flaky = Flaky(0)
    assert await flaky.run() == "answer"
    assert flaky.made == 1


async def test_each_pause_follows_from_the_number_of_failures_and_the_last_one() -> None:
    flaky = Flaky(3)
    assert await flaky.run() == "answer"
    assert (flaky.made, flaky.waits) == (4, [1, 2, 3])
    assert flaky.paused == [(1, "1"), (2, "2"), (3, "3")]


async def test_the_last_error_is_raised_when_no_attempt_is_left() -> None:
    flaky = Flaky(99)
    with pytest.raises(DownError, match="4"):
        await flaky.run()
    assert (flaky.made, flaky.waits) == (4, [1, 2, 3])


@pytest.mark.parametrize("failures", [1, 3])
async def test_other_errors_are_not_retried(failures: int) -> None:
    flaky = Flaky(failures, KeyError)
    with pytest.raises(KeyError):
        await flaky.run()
    assert flaky.made == 1


class Large:
    """What an attempt references."""


async def test_nothing_of_a_failed_attempt_is_part_of_a_reference_cycle() -> None:
    kept: list[weakref.ref[Large]] = []

    async def once() -> str:
        large = Large()
        kept.append(weakref.ref(large))
        if len(kept) < 3:
            raise DownError(len(kept))
        return "answer"

    async def sleep(_: float) -> None:
        assert kept[-1]() is None, "it is freed before the pause"

    gc.collect()
    gc.disable()
    try:
        assert await retried(once, DownError, lambda *_: 0.0, sleep) == "answer"
        assert [one() for one in kept] == [None] * 3
    finally:
        gc.enable()


async def test_an_error_that_is_raised_after_one_attempt_is_freed_with_its_frames() -> None:
    kept: list[weakref.ref[Large]] = []

    async def once() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        raise DownError

    async def fails() -> None:
        with pytest.raises(DownError):
            await retried(once, DownError, lambda *_: None)

    gc.collect()
    gc.disable()
    try:
        await fails()
        assert [one() for one in kept] == [None]
    finally:
        gc.enable()


@given(failures=st.integers(1, 10_000), first_s=st.floats(0.001, 10), longest_s=st.floats(0.001, 100))
def test_the_backoff_doubles_up_to_its_limit(failures: int, first_s: float, longest_s: float) -> None:
    found = backoff(failures, first_s, longest_s, lambda _, high: high)
    assert found == min(first_s * 2 ** min(failures - 1, 32), longest_s)
    assert backoff(failures, first_s, longest_s, min) == 0, "full jitter"
