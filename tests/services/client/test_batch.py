"""Requests for many keys at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from services.client import (
    CatchingUpError,
    Client,
    Expired,
    Found,
    InvalidResponseError,
    NeverSeen,
    NoAnswerError,
    RejectedError,
    StaleReadError,
)
from services.client.batch import CONCURRENT_REQUESTS
from tests.services.client.fake_service import (
    Fake,
    body_response,
    entry,
    hanging,
    problem,
    problem_response,
    resetting,
    shortest_attempt,
)
from tests.services.client.test_get import Flight
from tests.services.query.http.instance import answering
from tests.services.query.in_memory import a_state, dependencies_of

if TYPE_CHECKING:
    from aiohttp import web


async def test_answers_are_in_the_order_of_the_keys(fake: Fake) -> None:
    fake.put(entry("a", 1), entry("b", 2), {"state": "flights", "key": "old", **problem("expired", 410)})
    async with Client(fake.url) as states:
        answers = await states.get_many("flights", ["b", "old", "absent", "a", "b"])
        assert await states.get_many("flights", []) == []
    assert [answer.key for answer in answers] == ["b", "old", "absent", "a", "b"]
    assert [type(answer) for answer in answers] == [Found, Expired, NeverSeen, Found, Found]
    assert fake.batches == [["b", "old", "absent", "a"]]


async def test_many_keys_are_split(fake: Fake) -> None:
    keys = [f"k{number}" for number in range(250)]
    fake.put(*(entry(key, 1) for key in keys))
    async with Client(fake.url) as states:
        answers = await states.get_many("flights", keys, model=Flight)
    assert [answer.value.device_id for answer in answers if isinstance(answer, Found)] == keys
    assert sorted(len(batch) for batch in fake.batches) == [50, 100, 100]


@pytest.mark.parametrize("settings", [{"max_batch_keys": 30}, {"largest_request": 1024}])
async def test_a_request_that_the_service_refuses_as_too_large_is_sent_in_parts(settings: dict[str, Any]) -> None:
    keys = [f"{number:0100}" for number in range(130)]
    async with (
        answering(dependencies_of(a_state(), **settings), hot=True) as instance,
        Client(f"http://127.0.0.1:{instance.port}", discover=False) as states,
    ):
        found = await states.get_many("flights", keys)
        assert [(type(one), one.key) for one in found] == [(NeverSeen, key) for key in keys]


async def test_a_size_that_the_service_refuses_is_not_sent_again(fake: Fake) -> None:
    sizes = list[int]()

    async def refuse(fake: Fake, request: web.Request) -> web.StreamResponse:
        sizes.append(len((await request.json())["keys"]))
        return await problem_response(*(("too_large", 413) if sizes[-1] > 30 else ("catching_up", 503)))(fake, request)

    fake.always = refuse
    async with Client(fake.url) as states:
        with pytest.raises(CatchingUpError):
            await states.get_many("flights", [f"k{number}" for number in range(100)], deadline=0.5)
    assert sizes[:7] == [100, 50, 50, 25, 25, 25, 25], "a part that fails stops no other"
    assert set(sizes[7:]) == {25}


async def test_parts_that_wait_are_sent_in_the_size_that_the_service_accepts(fake: Fake) -> None:
    keys, refused = [f"k{number}" for number in range(4000)], list[int]()
    fake.put(*(entry(key, 1) for key in keys))

    async def limited(fake: Fake, request: web.Request) -> web.StreamResponse:
        if (size := len((await request.json())["keys"])) <= 12:
            return await fake.correct_response(request)
        refused.append(size)
        return await problem_response("too_large", 413)(fake, request)

    fake.always = limited
    async with Client(fake.url) as states:
        answers = await states.get_many("flights", keys)
    assert [answer.key for answer in answers] == keys
    assert max(refused.count(size) for size in (100, 50, 25)) <= CONCURRENT_REQUESTS, (
        "only those that were on their way"
    )


async def test_a_key_alone_that_the_service_refuses_as_too_large_is_an_error() -> None:
    async with (
        answering(dependencies_of(a_state(), largest_request=1024), hot=True) as instance,
        Client(f"http://127.0.0.1:{instance.port}", discover=False) as states,
    ):
        with pytest.raises(RejectedError, match="413"):
            await states.get_many("flights", ["a", "x" * 2000])


async def test_only_failed_keys_are_retried(fake: Fake) -> None:
    fake.put(entry("a", 1), {"state": "flights", "key": "b", **problem("catching_up", 503)})
    async with Client(fake.url) as states:
        with shortest_attempt(1.0), pytest.raises(CatchingUpError):
            await states.get_many("flights", ["a", "b"], deadline=2.0)
        assert fake.batches[:3] == [["a", "b"], ["b"], ["b"]]
        fake.put(entry("b", 1))
        assert [type(one) for one in await states.get_many("flights", ["a", "b"])] == [Found, Found]


async def test_a_batch_is_retried_after_transient_failures(fake: Fake) -> None:
    fake.put(entry("a", 1))
    fake.faults.extend([resetting, problem_response("too_many", 429), body_response(b"", 502)])
    async with Client(fake.url) as states:
        assert [type(one) for one in await states.get_many("flights", ["a"])] == [Found]


async def test_a_batch_is_read_from_another_address_when_the_first_one_fails(fakes: list[Fake]) -> None:
    for fake in fakes:
        fake.put(entry("a", 1), entry("b", 1))
    fakes[0].always = problem_response("catching_up", 503)
    async with Client([fake.url for fake in fakes]) as states:
        for failing in (fakes[0], fakes[1]):
            assert {type(one) for one in await states.get_many("flights", ["a", "b"], deadline=3.0)} == {Found}
            await failing.stop()


async def test_a_batch_of_any_size_keeps_its_deadline(fake: Fake) -> None:
    fake.always = hanging
    keys = [f"k{number}" for number in range(4000)]
    async with Client(fake.url) as states:
        with pytest.raises(NoAnswerError, match="not answered in time"):
            await states.get_many("flights", keys, deadline=0.5)
    assert len(fake.requests) < 40, "the deadline does not start again with each round of requests"


async def test_a_batch_with_an_earlier_version_raises(fake: Fake) -> None:
    fake.put(entry("a", 5), entry("b", 5))
    async with Client(fake.url) as states:
        await states.get("flights", "a")
        fake.put(entry("a", 4))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get_many("flights", ["a", "b"])


@pytest.mark.parametrize("body", [b"{}", b'{"answers": []}', b'{"answers": [1]}', b'{"answers": [{}]}', b"[]"])
async def test_invalid_results_raise(fake: Fake, body: bytes) -> None:
    fake.always = body_response(body)
    async with Client(fake.url) as states:
        with shortest_attempt(math.inf), pytest.raises(InvalidResponseError):
            await states.get_many("flights", ["a"])


async def test_a_rejected_key_raises(fake: Fake) -> None:
    fake.put(entry("a", 1), {"state": "flights", "key": "b", **problem("not_yours", 403)})
    async with Client(fake.url) as states:
        with pytest.raises(RejectedError, match="flights/b was refused"):
            await states.get_many("flights", ["a", "b"])
