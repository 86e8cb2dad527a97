"""Requests for the keys of one window: by key, by value, and by number, from one instance and from two."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest

from services.query.cluster import Member, PartitionStatus, Role
from services.query.http.cursor import encode_cursor
from services.query.lookup.authentication import Principal
from tests.services.query.http.instance import Instance, answering
from tests.services.query.http.two_instances import TwoInstances, two_instances
from tests.services.query.in_memory import NOW, MemoryRouting, a_state, dependencies_of
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, Departures, answered_at, at, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PATH = "/v1/states/departures/windows"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Instance, Departures]]:
    with departures(tmp_path) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            yield instance, written


async def pages(instance: Instance, hour: float, **query: Any) -> list[dict[str, Any]]:
    """Return the items of all pages."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        parameters = urlencode({**query, **({} if cursor is None else {"cursor": cursor})}, doseq=True)
        page = await instance.ask(f"{PATH}/{quote(at(hour))}?{parameters}")
        assert page.status == 200, page.body
        assert len(page.json["items"]) <= query.get("limit", 100)
        found += page.json["items"]
        cursor = page.json["cursor"]
        if cursor is None:
            return found


async def test_the_keys_of_a_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for key in ("LGA", "EWR", "JFK"):
        written.put(key, 0, flights=3)
        written.put(key, 1, flights=4)
    written.put("SEA", 1, flights=5)
    for text in (at(0), at(0.999), quote("2023-11-14T13:30:00+01:00")):
        found = (await instance.ask(f"{PATH}/{text}")).json
        assert [one["key"] for one in found["items"]] == ["EWR", "JFK", "LGA"]
        assert {one["value"]["state"]["flights"] for one in found["items"]} == {3}
        assert (found["window_start"], found["window_end"]) == (answered_at(0), answered_at(1))
        assert found["is_open"] is True
        assert found["cursor"] is None
    missing = await instance.ask(f"{PATH}/{at(2)}")
    assert missing.json == {"window_start": None, "window_end": None, "is_open": None, "items": [], "cursor": None}


async def test_the_top_keys_of_the_present_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    hour = (NOW - NOON) // HOUR
    for key, flights in (("LGA", 3), ("EWR", 11), ("JFK", 7), ("SEA", None), ("BOS", 7), ("DCA", "many")):
        written.put(key, hour, flights=flights)
        written.put(key, hour - 1, flights=1)
    top = await instance.ask(f"{PATH}/now?order_by=-state.flights&limit=2")
    assert [one["key"] for one in top.json["items"]] == ["EWR", "JFK"]
    written.put("LGA", hour, version=2, flights=12)
    top = await instance.ask(f"{PATH}/now?order_by=-state.flights&limit=3&fields=state.flights")
    assert [one["key"] for one in top.json["items"]] == ["LGA", "EWR", "JFK"]
    assert top.json["items"][0]["value"] == {"state": {"flights": 12}}
    rest = await instance.ask(f"{PATH}/now?order_by=-state.flights&cursor={top.json['cursor']}")
    assert [one["key"] for one in rest.json["items"]] == ["BOS"]
    lowest = await instance.ask(f"{PATH}/now?order_by=state.flights&limit=2")
    assert [one["key"] for one in lowest.json["items"]] == ["BOS", "JFK"]


async def test_a_cursor_stays_in_its_window(tmp_path: Path) -> None:
    with departures(tmp_path) as (dependencies, written):
        time = [NOON + HOUR - 1]
        async with answering(replace(dependencies, now=lambda: time[0]), hot=True) as instance:
            for key in ("JFK", "LGA"):
                written.put(key, 0)
                written.put(key, 1)
            first = (await instance.ask(f"{PATH}/now?limit=1")).json
            time[0] = NOON + HOUR
            second = (await instance.ask(f"{PATH}/now?limit=1&cursor={first['cursor']}")).json
    assert [one["key"] for one in second["items"]] == ["LGA"]
    assert second["window_start"] == first["window_start"] == answered_at(0)


async def test_two_instances_return_the_same_pages_as_one(tmp_path: Path) -> None:
    random = Random(7)
    async with two_instances(tmp_path) as instances:
        written: dict[str, dict[str, Any]] = {f"{prefix}{number}": {} for prefix in ("a", "b") for number in range(30)}
        for version in range(1, 4):
            for key, values in written.items():
                flights, carrier = random.choice((None, -2, 0, 1, 1.5, 2, 10)), random.choice(("UA", "AA"))
                values |= {"flights": flights, "carrier": carrier}
                instances.put(key, 0, version=version, **values)
                instances.put(key, 1, version=version, flights=99)
        await _compare(instances, written)


async def _compare(instances: TwoInstances, written: dict[str, dict[str, Any]]) -> None:
    by_key = sorted(written)
    numbered = sorted((values["flights"], key) for key, values in written.items() if values["flights"] is not None)
    united = {key for key, values in written.items() if values["carrier"] == "UA"}
    for instance in instances[:2]:
        for limit in (1, 7, 100):
            found = [one["key"] for one in await pages(instance, 0, limit=limit)]
            assert found == by_key
            found = [one["key"] for one in await pages(instance, 0, limit=limit, where="state.carrier:UA", prefix="b")]
            assert found == [key for key in by_key if key in united and key.startswith("b")]
            found = [one["key"] for one in await pages(instance, 0, limit=limit, order_by="state.flights")]
            assert found == [key for _, key in numbered]
            query = {"limit": limit, "order_by": "-state.flights", "where": ["state.carrier:UA"]}
            found = [one["key"] for one in await pages(instance, 0, **query)]
            assert found == [key for _, key in reversed(numbered) if key in united]


async def test_invalid_requests_are_rejected(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for key in ("JFK", "LGA"):
        written.put(key, 0, flights=1)
    page = (await instance.ask(f"{PATH}/{at(0)}?limit=1")).json
    for target in (
        "2023-11-14",
        "2023-11-14T12:00:00",
        "20231114T120000Z",
        "1699963200",
        f"{at(0)}?order_by=state.delay",
        f"{at(0)}?where=state.delay:1",
        f"{at(0)}?limit=999999",
        f"{at(0)}?cursor=JFK",
        f"{at(0)}?order_by=state.flights&cursor={page['cursor']}",
        f"{at(0)}?after=JFK",
    ):
        assert (await instance.ask(f"{PATH}/{target}")).kind == "bad_request", target
    assert (await instance.ask(f"{PATH}/tomorrow")).kind == "unknown_path"
    async with answering(dependencies_of(a_state()), hot=True) as plain:
        assert (await plain.ask(f"/v1/states/flights/windows/{at(0)}")).kind == "bad_request"


async def test_a_time_before_the_year_1_has_no_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0)
    cursor = encode_cursor([None, -(1 << 62), 0.0, "a"])
    for target in (f"{PATH}/{quote('0001-01-01T00:00:00+14:00')}", f"{PATH}/now?cursor={cursor}"):
        found = await instance.ask(target)
        assert (found.status, found.json["items"]) == (200, [])


async def test_a_key_named_windows_can_be_read(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("windows", 0)
    assert (await instance.ask(PATH)).json["key"] == "windows"
    assert len((await instance.ask(f"{PATH}/versions")).json["versions"]) == 1
    assert len((await instance.ask(f"{PATH}/windows")).json["windows"]) == 1


async def test_a_page_fails_if_a_partition_is_unavailable(tmp_path: Path) -> None:
    routing = MemoryRouting()
    with departures(tmp_path, routing=routing) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            written.put("JFK", 0)
            routing.others = {2: PartitionStatus(Role.CATCHING_UP, 5_000)}
            assert (await instance.ask(f"{PATH}/{at(0)}")).kind == "catching_up"
            routing.others = {2: PartitionStatus(Role.ELSEWHERE, 0)}
            assert (await instance.ask(f"{PATH}/{at(0)}")).kind == "unreachable"
            routing.known = [Member("two", "http://unused")]
            assert (await instance.ask(f"{PATH}/{at(0)}")).kind == "elsewhere"


async def test_a_token_for_some_keys_needs_their_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with departures(tmp_path) as (dependencies, written):
        async with answering(dependencies, hot=False) as instance:
            monkeypatch.setattr(
                instance.access, "authenticate", lambda _: Principal("some", (DEPARTURES.name,), ("JFK",))
            )
            written.put("JFK", 0, flights=1)
            written.put("LGA", 0, flights=2)
            for query in ("", "?prefix=J", "?order_by=-state.flights"):
                assert (await instance.ask(f"{PATH}/{at(0)}{query}")).kind == "not_yours"
            found = await instance.ask(f"{PATH}/{at(0)}?prefix=JFK")
            assert [one["key"] for one in found.json["items"]] == ["JFK"]
            ordered = await instance.ask(f"{PATH}/{at(0)}?prefix=JFK&order_by=-state.flights")
            assert (ordered.kind, ordered.status) == ("not_yours", 403), "its cursor may name any key"
            assert (await instance.ask("/v1/states/departures/LGA/windows")).kind == "not_yours"
            assert (await instance.ask(f"/v1/states/departures/LGA?at={at(0)}")).kind == "not_yours"
            assert (await instance.ask("/v1/states/departures/JFK/windows")).status == 200
