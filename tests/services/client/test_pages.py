"""Keys page by page, versions, and the states."""

from __future__ import annotations

import pytest

from services.client import Client, InvalidResponseError, RejectedError
from tests.services.client.fake_service import SCHEMA, Fake, entry, saying, telling


async def test_keys_come_page_by_page(fake: Fake) -> None:
    fake.put(*(entry(f"k{number}", 1) for number in range(5)), entry("other", 1))
    async with Client(fake.url) as states:
        assert [key async for key in states.keys("flights", prefix="k")] == ["k0", "k1", "k2", "k3", "k4"]
        assert [item.version async for item in states.items("flights")] == [1] * 6
        page = await states.page("flights", limit=4, after="k1")
    assert [item.key for item in page.items] == ["k2", "k3", "k4", "other"]
    assert page.after is None
    assert fake.requests[0] == "/v1/states/flights?prefix=k"


async def test_a_page_that_fails_is_retried(fake: Fake) -> None:
    fake.put(*(entry(f"k{number}", 1) for number in range(5)))
    async with Client(fake.url) as states:
        keys = []
        async for key in states.keys("flights"):
            keys.append(key)
            fake.faults.append(telling("catching_up", 503))
    assert keys == ["k0", "k1", "k2", "k3", "k4"]


async def test_filters_are_on_the_wire(fake: Fake) -> None:
    async with Client(fake.url) as states:
        await states.page("flights", where={"state.status": "landed", "state.to": "a b&c"})
        fake.faults.append(telling("bad_request", 400))
        with pytest.raises(RejectedError):
            await states.page("flights", where={"state.nothing": "x"})
    assert fake.requests[0] == "/v1/states/flights?where=state.status%3Alanded&where=state.to%3Aa%20b%26c"


async def test_versions_are_those_of_the_key(fake: Fake) -> None:
    fake.put(entry("a/b", 3))
    async with Client(fake.url) as states:
        assert [one.version for one in await states.versions("flights", "a/b")] == [1, 2, 3]


async def test_states_are_listed(fake: Fake) -> None:
    async with Client(fake.url) as states:
        first, second = await states.states()
    assert (first.name, first.partitions, first.keys, first.lag) == ("flights", 4, 7, 2)
    assert second.name == "cities"
    assert second.facts["schema"] == SCHEMA


@pytest.mark.parametrize(
    "body", [b"{}", b'{"items": [1]}', b'{"items": [{}]}', b'{"states": [{}]}', b'{"versions": 1}']
)
async def test_malformed_responses_raise(fake: Fake, body: bytes) -> None:
    fake.always = saying(body)
    async with Client(fake.url) as states:
        with pytest.raises(InvalidResponseError):
            await states.page("flights")
        with pytest.raises(InvalidResponseError):
            await states.versions("flights", "k")
        with pytest.raises(InvalidResponseError):
            await states.states()
