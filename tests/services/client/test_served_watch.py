"""Watches of one key at an instance of the query service: what the service sends and what the client yields."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contracts import QueryOptions
from contracts.metrics import query as metrics
from services.client import AccessDeniedError, Client, Found, Mark, NeverSeen, RejectedError, Removed, WatchFilter
from services.query.http import websocket
from tests.services.client.test_watch import following, versions
from tests.services.query.in_memory import a_state
from tests.services.query.push.serving import QUICK, Instance, eventually

if TYPE_CHECKING:
    from pathlib import Path

KEY = "a/b"
SECRET = "t" * 32


async def test_a_key_is_followed_from_before_its_first_record() -> None:
    async with (
        Instance().serving() as instance,
        Client(instance.base, discover=False) as states,
        aclosing(states.watch("flights", KEY)) as updates,
    ):
        (never,) = await following(updates, 1)
        assert isinstance(never, NeverSeen)
        instance.change(KEY, 1)
        instance.change("other", 1)
        assert versions(await following(updates, 1)) == [1]
        instance.watching.changed([instance.remove(KEY)])
        assert await following(updates, 1) == [Removed("flights", KEY)]


async def test_after_a_lost_connection_the_missed_versions_follow() -> None:
    """A watch of one key receives each version that the state stores, also those of the time without a connection."""
    async with Instance(a_state(query=QueryOptions(history=4))).serving() as instance:
        instance.change(KEY, 1)
        async with Client(instance.base, discover=False) as states, aclosing(states.watch("flights", KEY)) as updates:
            assert versions(await following(updates, 1)) == [1]
            for stream in instance.watching._streams:  # noqa: SLF001
                stream.end()
            for version in (2, 3, 4):
                instance.change(KEY, version)
            assert versions(await following(updates, 3)) == [2, 3, 4]


async def test_more_filters_than_a_connection_may_have_are_refused() -> None:
    limits = replace(QUICK, subscriptions=2)
    async with Instance(limits=limits).serving() as instance, Client(instance.base, discover=False) as states:
        filters = [WatchFilter("flights", f"k{number}") for number in range(3)]
        async with aclosing(states.watch_many(*filters)) as updates:
            with pytest.raises(RejectedError, match=r"flights/k2 was refused \(429\): .* may have 2 subsc"):
                await following(updates, 3)


async def test_a_caller_that_takes_longer_than_the_service_waits_for_a_pong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_S", 0.05)
    async with (
        Instance().serving() as instance,
        Client(instance.base, discover=False) as states,
        aclosing(states.watch("flights", KEY)) as updates,
    ):
        instance.change(KEY, 1)
        assert versions(await following(updates, 1)) == [1]
        await eventually(lambda: not instance.subscriptions())  # the caller is busy, and the service gives up
        instance.change(KEY, 2)
        assert versions(await following(updates, 1)) == [2]


async def test_marks_have_the_position_of_a_watch_that_has_everything() -> None:
    async with Instance(limits=QUICK).serving() as instance, Client(instance.base, discover=False) as states:
        instance.change(KEY, 1)
        async with aclosing(states.watch("flights", KEY, marks=True)) as updates:
            found, mark = await following(updates, 2)
    assert isinstance(found, Found)
    assert isinstance(mark, Mark)
    assert mark.positions["flights"]


async def test_a_refused_watch_has_the_reason_of_the_service(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    written = {"name": "dashboard", "token": SECRET, "states": ["flights"], "keys": ["x/"]}
    tokens.write_text(json.dumps({"tokens": [written]}))
    async with Instance(tokens=tokens).serving() as instance:
        async with Client(instance.base, discover=False) as states:
            with pytest.raises(AccessDeniedError, match=r"flights/a/b was refused \(401\): Send a token"):
                await following(states.watch("flights", KEY), 1)
        async with Client(instance.base, discover=False, token=SECRET) as states:
            with pytest.raises(AccessDeniedError, match=r"flights/a/b was refused \(403\)"):
                await following(states.watch("flights", KEY), 1)


async def test_an_unknown_state_has_the_reason_of_the_service() -> None:
    async with Instance().serving() as instance, Client(instance.base, discover=False) as states:
        with pytest.raises(RejectedError, match=r"ships/a/b was refused \(404\): 'ships' is no state"):
            await following(states.watch("ships", KEY), 1)


async def test_a_subscription_beyond_the_rate_waits_as_long_as_the_service_says() -> None:
    async with Instance(rate=2).serving() as instance, Client(instance.base, discover=False) as states:
        instance.change(KEY, 1)
        for _ in range(2):
            async with aclosing(states.watch("flights", KEY)) as updates:
                assert versions(await following(updates, 1)) == [1]
        assert instance.dependencies.counts.get(metrics.REFUSED, "rate") == 1
