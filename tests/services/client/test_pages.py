"""Keys page by page, versions, and the states."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from services.client import Client, Found, InvalidResponseError, Left, RejectedError, WatchFilter
from services.tools.cli.__main__ import main
from tests.services.client.fake_service import SCHEMA, Fake, body_response, entry, problem_response
from tests.services.client.streaming import message
from tests.services.client.test_watch import following
from tests.services.client.test_windows import answered
from tests.services.query.http.instance import answering
from tests.services.query.windowed import DEPARTURES, departures

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.client.streaming import Streaming


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
            fake.faults.append(problem_response("catching_up", 503))
    assert keys == ["k0", "k1", "k2", "k3", "k4"]


async def test_filters_are_sent(fake: Fake) -> None:
    async with Client(fake.url) as states:
        await states.page("flights", where={"state.status": "landed", "state.to": "a b&c"})
        fake.faults.append(problem_response("bad_request", 400))
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
    fake.always = body_response(body)
    async with Client(fake.url) as states:
        with pytest.raises(InvalidResponseError):
            await states.page("flights")
        with pytest.raises(InvalidResponseError):
            await states.versions("flights", "k")
        with pytest.raises(InvalidResponseError):
            await states.states()


async def test_silent_keys(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put(*(entry(key, 1) for key in ("a", "b")))
    async with Client(fake.url) as states:
        assert [key async for key in states.keys("flights", silent_for=timedelta(minutes=5))] == ["a", "b"]
    assert fake.requests == ["/v1/states/flights?silent_for=300s"]
    given = ["keys", "flights", "--silent-for", "5m", "--url", fake.url]
    assert await asyncio.to_thread(main, given) == 0
    assert capsys.readouterr().out == "a\nb\n"
    assert fake.requests[1:] == fake.requests[:1]
    for wrong in (["--silent-for", "soon"], ["--silent-for", "5m", "--window", "now"]):
        assert await asyncio.to_thread(main, ["keys", "flights", *wrong]) == 2


async def test_a_watch_of_silent_keys(streaming: Streaming) -> None:
    wanted = WatchFilter("flights", prefix="UA", silent_for=timedelta(seconds=30))
    async with Client(streaming.url) as states, aclosing(states.watch_many(wanted)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        opened = await streaming.connection(0)
        place = {"state": "flights", "key": "UA1"}
        silent = message(answered(entry("UA1", 1)))
        opened.send(silent, message(place, kind="left"), silent)
        found = await reading
    assert opened.received[0]["silent_for"] == "30s"
    assert [type(one) for one in found] == [Found, Left, Found]


@pytest.mark.parametrize("limit", [100, 150, 1_001])
async def test_a_limit_above_that_of_the_service_is_read_in_pages(tmp_path: Path, limit: int) -> None:
    state = replace(DEPARTURES, query=replace(DEPARTURES.query, remember=timedelta(days=30)))
    with departures(tmp_path, state=state) as (dependencies, written):
        limited = replace(dependencies, settings=dependencies.settings.model_copy(update={"max_page_keys": 100}))
        for number in range(200):
            written.put("JFK", number)
            written.put(f"airport-{number}", 0)
        async with (
            answering(limited, hot=True) as instance,
            Client(f"http://127.0.0.1:{instance.port}", discover=False) as states,
        ):
            windows = [one async for one in states.windows("departures", "JFK", limit=limit)]
            items = [one async for one in states.window_items("departures", windows[0].window_start, limit=limit)]
        assert (len(windows), len(items)) == (min(limit, 200), min(limit, 201))
