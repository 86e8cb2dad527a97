"""Pages of silent keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contracts.model.named_state import QueryOptions
from services.query.lookup.authentication import Principal
from tests.services.query.http.instance import Instance, answering
from tests.services.query.http.two_instances import two_instances
from tests.services.query.in_memory import NOW, a_state, dependencies_of
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, Departures, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PATH = "/v1/states/departures"
STATE = replace(DEPARTURES, query=replace(DEPARTURES.query, silence=True))
NOW_HOUR = (NOW - NOON) / HOUR
"""The hours from noon until now: a snapshot's event time is the start of its window."""
KEYS = [f"airport-{number:02}" for number in range(20)]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Instance, Departures]]:
    with departures(tmp_path, state=STATE) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            yield instance, written


async def silent(instance: Instance, query: str) -> list[str]:
    """Return the keys of all pages."""
    found, after = list[str](), ""
    while True:
        page: dict[str, Any] = (await instance.ask(f"{PATH}?{query}{after}")).json
        found += [one["key"] for one in page["items"]]
        if page["after"] is None:
            return found
        after = f"&after={page['after']}"


async def test_the_keys_silent_longest_come_first(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for ago, key in ((3, "a"), (5, "b"), (1, "c"), (4, "ab")):
        written.put(key, NOW_HOUR - ago / 60, carrier="UA" if key != "b" else "AA")
    assert await silent(instance, "silent_for=2m") == ["b", "ab", "a"]
    assert await silent(instance, "silent_for=120&limit=1") == ["b", "ab", "a"]
    assert await silent(instance, "silent_for=2m&prefix=a") == ["ab", "a"]
    assert await silent(instance, "silent_for=2m&where=state.carrier:UA") == ["ab", "a"]
    assert await silent(instance, "silent_for=239s") == ["b", "ab"]
    assert await silent(instance, "silent_for=240s") == ["b"]
    assert await silent(instance, "silent_for=1h") == []
    page = (await instance.ask(f"{PATH}?silent_for=4m&fields=state.carrier")).json
    assert page["items"][0]["value"] == {"state": {"carrier": "AA"}}
    assert page["items"][0]["age_ms"] >= 5 * 60_000
    (listed,) = (await instance.ask("/v1/states")).json["states"]
    assert listed["silence"] is True


async def test_silence_counts_from_the_newest_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("a", NOW_HOUR - 2)
    written.put("a", NOW_HOUR)
    assert await silent(instance, "silent_for=1h") == []
    written.put("a", NOW_HOUR - 1.5)  # late
    assert await silent(instance, "silent_for=1h") == []
    written.remove("a", NOW_HOUR)
    assert await silent(instance, "silent_for=1h") == ["a"]
    written.store.advance_watermark(NOW + 20 * HOUR)
    assert await silent(instance, "silent_for=1h") == []


async def test_a_token_for_some_keys_does_not_list_silent_keys(
    served: tuple[Instance, Departures], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan skips keys of all prefixes, and its cursor names the last one."""
    instance, written = served
    written.put("JFK", NOW_HOUR - 1)
    for keys, status in ((("JFK",), 403), (("JFK", ""), 200)):
        monkeypatch.setattr(instance.access, "authenticate", lambda _, of=keys: Principal("some", (STATE.name,), of))
        response = await instance.ask(f"{PATH}?silent_for=1m&prefix=JFK")
        assert (response.status, response.json.get("type")) == (status, "not_yours" if status == 403 else None)
        assert (await instance.ask(f"{PATH}?prefix=JFK")).json["items"][0]["key"] == "JFK"


async def test_invalid_requests_are_rejected(served: tuple[Instance, Departures]) -> None:
    instance, _ = served
    for query in ("silent_for=soon", "silent_for=-1", "silent_for=1.5s", "silent_for=1m&after=a", "silent_for="):
        assert (await instance.ask(f"{PATH}?{query}")).kind == "bad_request", query
    async with answering(dependencies_of(a_state()), hot=True) as other:
        refused = await other.ask("/v1/states/flights?silent_for=30s")
    assert (refused.kind, "QueryOptions(silence=True)" in refused.json["detail"]) == ("bad_request", True)


async def test_a_state_with_a_lifetime() -> None:
    state = a_state(lifetime=timedelta(hours=1), query=QueryOptions(silence=True))
    dependencies = dependencies_of(state)
    store: Any = dependencies.stores["flights"]
    for ago in (10, 40, 50):
        store.put(f"UA{ago}", event_time=NOW - ago * 1000)
    async with answering(dependencies, hot=True) as instance:
        page = (await instance.ask("/v1/states/flights?silent_for=30s")).json
    assert [one["key"] for one in page["items"]] == ["UA50", "UA40"]


async def test_any_instance_lists_the_silent_keys_of_all(tmp_path: Path) -> None:
    async with two_instances(tmp_path, STATE) as instances:
        for number, key in enumerate(KEYS):
            instances.put(key, NOW_HOUR - (number * 7 % 20) / 60)
        expected = sorted(KEYS, key=lambda key: -(KEYS.index(key) * 7 % 20))[:14]
        for instance in instances[:2]:
            for limit in (1, 4, 100):
                assert await silent(instance, f"silent_for=5m&limit={limit}") == expected
