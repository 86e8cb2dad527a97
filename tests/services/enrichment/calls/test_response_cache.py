"""Calls alike are made once: while one is under way, and for as long as its answer is good."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from contracts import AbsentError, Cache, PermanentCallError
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.calls.response_cache import ENTRY_BYTES, ResponseCache
from services.enrichment.calls.statuses import MisfitError

SECOND = timedelta(seconds=1)
POLICY = Cache(results=60 * SECOND, absences=10 * SECOND)


class FakeFetch:
    """Kept answers, a clock, and an API that answers when it is let."""

    def __init__(self, policy: Cache | None = POLICY) -> None:
        self.now = 0.0
        self.counts = Counts(metrics.CATALOGUE)
        self.answers = ResponseCache("city", policy, lambda: self.now, self.counts)
        self.calls = 0
        self.body = b"body"
        self.error: Exception | None = None
        self.let = asyncio.Event()
        self.let.set()

    async def get(self, key: str = "k", younger_than: timedelta | None = None) -> list[bytes]:
        return await self.answers.get(key, list, younger_than, self._ask, lambda body: [body])

    def outcomes(self) -> dict[str, float]:
        return {labels[-1]: value for labels, value in self.counts.divided(metrics.CACHE).items()}

    async def _ask(self) -> tuple[bytes, list[bytes]]:
        self.calls += 1
        await self.let.wait()
        if self.error is not None:
            raise self.error
        return self.body, [self.body]


async def test_an_answer_is_good_for_its_time() -> None:
    one = FakeFetch()
    for one.now in (0, 59.9):
        assert await one.get() == [b"body"]
    assert one.calls == 1
    one.now = 60
    await one.get()
    assert one.calls == 2
    assert one.outcomes() == {"miss": 2, "hit": 1}


async def test_a_follower_with_another_model_fetches_itself() -> None:
    one = FakeFetch()

    def read(_: bytes) -> list[bytes]:
        raise MisfitError("it is of another model")

    await one.get()
    assert await one.answers.get("k", list, None, one._ask, read) == [b"body"]  # noqa: SLF001
    assert one.calls == 2


async def test_an_absence_is_good_for_its_own_time() -> None:
    one = FakeFetch()
    one.error = AbsentError("status 404")
    for one.now in (0, 9.9, 10):
        with pytest.raises(AbsentError, match="status 404"):
            await one.get()
    assert one.calls == 2


@pytest.mark.parametrize("error", [PermanentCallError("no"), KeyError("a bug")])
async def test_a_failure_is_not_kept(error: Exception) -> None:
    one = FakeFetch()
    one.error = error
    for _ in range(2):
        with pytest.raises(type(error)):
            await one.get()
    assert one.calls == 2


async def test_a_caller_with_a_lower_age_limit_gets_no_older_response() -> None:
    one = FakeFetch()
    await one.get()
    one.now = 30
    assert await one.get(younger_than=40 * SECOND)
    assert one.calls == 1
    await one.get(younger_than=20 * SECOND)
    assert one.calls == 2
    await one.get(younger_than=SECOND)
    assert one.calls == 2, "it was kept anew"


async def test_another_key_is_another_answer_and_no_cache_keeps_none() -> None:
    one, none = FakeFetch(), FakeFetch(None)
    for _ in range(2):
        await one.get("a")
        await one.get("b")
        await none.get()
    assert (one.calls, none.calls) == (2, 2)


async def test_those_used_longest_ago_make_room() -> None:
    one = FakeFetch(Cache(size=3 * (ENTRY_BYTES + 5)))
    for key in "abcad":
        await one.get(key)
    assert one.calls == 4
    for key in "acd":
        await one.get(key)
    assert one.calls == 4
    await one.get("b")
    assert one.calls == 5


async def test_a_long_key_takes_its_room() -> None:
    one = FakeFetch(Cache(size=ENTRY_BYTES + 100))
    for _ in range(2):
        await one.get("k" * 101)
    assert one.calls == 2


async def test_one_that_is_larger_than_all_room_is_not_kept() -> None:
    one = FakeFetch(Cache(size=ENTRY_BYTES))
    for _ in range(2):
        assert await one.get() == [b"body"]
    assert one.calls == 2


@pytest.mark.parametrize("policy", [POLICY, None])
async def test_calls_alike_at_the_same_time_are_one(policy: Cache | None) -> None:
    one = FakeFetch(policy)
    one.let.clear()
    pending = [asyncio.create_task(one.get()) for _ in range(5)]
    await asyncio.sleep(0)
    one.let.set()
    found = await asyncio.gather(*pending)
    assert (one.calls, found) == (1, [[b"body"]] * 5)
    assert one.outcomes() == {"miss": 1, "shared": 4}
    found[0].append(b"changed")
    assert found[1:] == [[b"body"]] * 4, "each has an answer of its own"


@pytest.mark.parametrize("error", [AbsentError("status 404"), PermanentCallError("no")])
async def test_they_share_an_absence_and_a_failure_too(error: Exception) -> None:
    one = FakeFetch()
    one.error = error
    one.let.clear()
    pending = [asyncio.create_task(one.get()) for _ in range(3)]
    await asyncio.sleep(0)
    one.let.set()
    assert {type(found) for found in await asyncio.gather(*pending, return_exceptions=True)} == {type(error)}
    assert one.calls == 1


async def test_when_the_caller_of_a_shared_call_is_cancelled_another_calls() -> None:
    one = FakeFetch()
    one.let.clear()
    pending = [asyncio.create_task(one.get()) for _ in range(3)]
    await asyncio.sleep(0)
    pending[0].cancel()
    await asyncio.sleep(0.001)
    assert one.calls == 2, "one of the others"
    one.let.set()
    assert await asyncio.gather(*pending[1:]) == [[b"body"]] * 2
    assert one.calls == 2


async def test_when_one_that_waits_is_given_up_the_others_do_not_notice() -> None:
    one = FakeFetch()
    one.let.clear()
    pending = [asyncio.create_task(one.get()) for _ in range(3)]
    await asyncio.sleep(0)
    pending[1].cancel()
    one.let.set()
    assert await pending[0] == await pending[2] == [b"body"]
    assert one.calls == 1
