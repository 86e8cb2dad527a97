"""Requests for the windows of a key: the newest, the one at a time, a range of them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.services.query.http.instance import Instance, answering
from tests.services.query.http.two_instances import owner_of, two_instances
from tests.services.query.in_memory import a_state, dependencies_of, until
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, Departures, answered_at, at, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PATH = "/v1/states/departures"
KEYS = [f"airport-{number}" for number in range(12)]


@pytest.fixture(params=["hot", "aiohttp"])
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Instance, Departures]]:
    with departures(tmp_path) as (dependencies, written):
        async with answering(dependencies, hot=request.param == "hot") as instance:
            yield instance, written


async def test_a_key_is_answered_with_its_newest_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0, version=4, flights=20)
    written.put("JFK", 1, version=2, flights=3)
    written.put("JFK", 0, version=5, flights=21)  # late
    found = await instance.ask(f"{PATH}/JFK")
    members = list(found.json)
    assert members[4:7] == ["window_start", "window_end", "is_open"]
    assert [found.json[name] for name in members[4:7]] == [answered_at(1), answered_at(2), True]
    assert found.json["value"]["state"] == {"flights": 3}
    assert found.headers["ETag"] == f'"{1_699_966_800_000}.0.2"'


async def test_the_window_at_a_time(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0, flights=20)
    written.put("JFK", 2, flights=3)
    for hour, flights in ((0, 20), (0.999, 20), (2, 3), (2.5, 3)):
        assert (await instance.ask(f"{PATH}/JFK?at={at(hour)}")).json["value"]["state"] == {"flights": flights}
    assert (await instance.ask(f"{PATH}/JFK?at={at(0.5)}&fields=state.flights")).json["value"] == {
        "state": {"flights": 20}
    }
    for hour in (-1, 1, 1.5, 3):
        missing = await instance.ask(f"{PATH}/JFK?at={at(hour)}")
        assert (missing.status, missing.kind) == (404, "no_window")
    assert (await instance.ask(f"{PATH}/LGA?at={at(0)}")).kind == "never_seen"
    assert (await instance.ask(f"{PATH}/JFK?at=noon")).kind == "bad_request"
    assert (await instance.ask(f"{PATH}/JFK?at=2023-11-14T12:00:00")).kind == "bad_request"


async def test_a_closed_window_is_marked_in_the_response(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0, flights=20)
    seen = await instance.ask(f"{PATH}/JFK")
    tag = seen.headers["ETag"]
    assert seen.json["is_open"]
    assert (await instance.ask(f"{PATH}/JFK", headers={"If-None-Match": tag})).status == 304
    written.store.advance_watermark(1_699_966_800_000)  # the clock is an hour and the grace ahead
    closed = await instance.ask(f"{PATH}/JFK", headers={"If-None-Match": tag})
    assert (closed.status, closed.json["is_open"]) == (200, False)
    assert closed.headers["ETag"] == tag[:-1] + '.closed"'
    again = {"If-None-Match": closed.headers["ETag"]}
    assert (await instance.ask(f"{PATH}/JFK", headers=again)).status == 304
    reference = closed.headers["ETag"].strip('"')
    assert (await instance.ask(f"{PATH}/JFK?min_version={reference}")).status == 200
    assert (await instance.ask(f"{PATH}/JFK?as_of={reference}")).status == 200


async def test_neither_the_clock_nor_newer_records_close_a_window(tmp_path: Path) -> None:
    """The job may be down, or read a backlog."""
    with departures(tmp_path, state=replace(DEPARTURES, expires_by_clock=True)) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            written.put("JFK", 0, flights=20)
            written.put("LGA", 5, flights=1)
            written.store.advance_watermark(NOON + 10 * HOUR)
            found = await instance.ask(f"{PATH}/JFK")
            assert (found.status, found.json["is_open"]) == (200, True)
            assert found.headers["ETag"] == f'"{NOON}.0.1"'


async def test_a_window_is_forgotten_after_its_retention(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0, flights=20)
    written.put("JFK", 12, flights=1)
    assert (await instance.ask(f"{PATH}/JFK?at={at(0)}")).status == 200
    written.put("LGA", 14, flights=1)
    missing = await instance.ask(f"{PATH}/JFK?at={at(0)}")
    assert missing.kind == "no_window"
    assert missing.json["remembered_since"] == "2023-11-14T12:55:00.000Z"
    assert len((await instance.ask(f"{PATH}/JFK/windows")).json["windows"]) == 1
    written.store.advance_watermark(1_700_100_000_000)
    assert (await instance.ask(f"{PATH}/JFK")).kind == "never_seen"


async def test_versions_and_epochs_are_ordered_within_a_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for version in (1, 2, 3):
        written.put("JFK", 0, version=version, flights=version)
    written.put("JFK", 1, version=1, flights=9)
    written.put("JFK", 0, version=1, epoch=1, flights=4)  # a rebuild
    written.put("JFK", 0, version=4, flights=5)  # of the epoch before
    found = (await instance.ask(f"{PATH}/JFK/versions?at={at(0.5)}")).json["versions"]
    assert [(one["epoch"], one["version"]) for one in found] == [(0, 2), (0, 3), (1, 1)]
    assert [one["version"] for one in (await instance.ask(f"{PATH}/JFK/versions")).json["versions"]] == [1]
    start = 1_699_963_200_000
    named = await instance.ask(f"{PATH}/JFK?as_of={start}.0.3")
    assert named.json["value"]["state"] == {"flights": 3}
    assert (await instance.ask(f"{PATH}/JFK?as_of={start}.0.1")).kind == "version_not_kept"
    assert (await instance.ask(f"{PATH}/JFK?as_of={start - 3_600_000}.0.1")).kind == "no_window"
    assert (await instance.ask(f"{PATH}/JFK?min_version={start}.1.1")).status == 200
    assert (await instance.ask(f"{PATH}/JFK?min_version={start}.1.1&at={at(0)}")).status == 200
    assert (await instance.ask(f"{PATH}/JFK?min_version={start}.1.2&at={at(0)}")).kind == "behind"


async def test_a_request_waits_for_a_version_of_a_window(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0)
    written.put("JFK", 1)
    path = f"{PATH}/JFK?at={at(0)}&min_version=2&wait=10"
    waiting = asyncio.create_task(instance.ask(path))
    await until(lambda: instance.waits.waiting == 1)
    instance.waits.changed(written.put("JFK", 1, version=2))
    instance.waits.changed(written.put("JFK", 0, version=2, flights=8))
    assert (await waiting).json["value"]["state"] == {"flights": 8}


async def test_a_range_of_windows_is_paged_in_both_orders(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for hour in (5, 1, 3, 0, 4):
        written.put("JFK", hour, flights=hour)
        written.put("JFK2", hour)

    async def hours(query: str) -> list[int]:
        found, cursor = list[int](), ""
        while True:
            page = (await instance.ask(f"{PATH}/JFK/windows?limit=2&{query}{cursor}")).json
            assert 0 < len(page["windows"]) <= 2
            assert {one["key"] for one in page["windows"]} == {"JFK"}
            found += [one["value"]["state"]["flights"] for one in page["windows"]]
            if page["cursor"] is None:
                return found
            cursor = f"&cursor={page['cursor']}"

    assert await hours("order=asc") == [0, 1, 3, 4, 5]
    assert await hours("order=desc") == [5, 4, 3, 1, 0]
    assert await hours(f"from={at(1)}&to={at(5)}") == [1, 3, 4]
    assert await hours(f"order=desc&from={at(0.5)}&to={at(5)}") == [4, 3, 1]
    empty = await instance.ask(f"{PATH}/LGA/windows")
    assert (empty.status, empty.json) == (200, {"windows": [], "cursor": None})


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_cursor_stays_valid_while_windows_are_added(tmp_path: Path, order: str) -> None:
    with departures(tmp_path) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            for hour in (2, 4, 6, 8):
                written.put("JFK", hour, flights=hour)
            first = (await instance.ask(f"{PATH}/JFK/windows?limit=2&order={order}")).json
            for hour in (1, 3, 5, 7, 9):
                written.put("JFK", hour, flights=hour)
            rest = (await instance.ask(f"{PATH}/JFK/windows?order={order}&cursor={first['cursor']}")).json
    expected = [5, 6, 7, 8, 9] if order == "asc" else [5, 4, 3, 2, 1]
    assert [one["value"]["state"]["flights"] for one in rest["windows"]] == expected


async def test_a_cursor_of_another_request_is_rejected(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for hour in range(3):
        written.put("JFK", hour)
    cursor = (await instance.ask(f"{PATH}/JFK/windows?limit=1")).json["cursor"]
    for query in (f"order=desc&cursor={cursor}", "cursor=x", "cursor=bnVsbA", "cursor=%C3%A9", "order=up", "limit=0"):
        assert (await instance.ask(f"{PATH}/JFK/windows?{query}")).kind == "bad_request"


@pytest.mark.parametrize("path", [PATH, f"{PATH}/JFK/windows", f"{PATH}/windows/{at(0)}"])
async def test_a_page_without_a_limit_has_the_largest_one_of_the_settings(tmp_path: Path, path: str) -> None:
    with departures(tmp_path) as (dependencies, written):
        settings = dependencies.settings.model_copy(update={"max_page_keys": 2})
        for key in ("EWR", "JFK", "LGA"):
            for hour in (0, 1, 2):
                written.put(key, hour)
        async with answering(replace(dependencies, settings=settings), hot=True) as instance:
            found = (await instance.ask(path)).json
            assert len(found.get("items", found.get("windows"))) == 2
            assert found.get("after", found.get("cursor")) is not None
            assert (await instance.ask(f"{path}?limit=3")).kind == "bad_request"


async def test_a_batch_reads_the_windows_at_a_time(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("JFK", 0, flights=1)
    written.put("JFK", 1, flights=2)
    written.put("LGA", 1, flights=3)
    body = {"keys": ["JFK", "LGA", "EWR"]}
    newest = (await instance.ask(f"{PATH}:batchGet", "POST", body=json.dumps(body).encode())).json["answers"]
    assert [one.get("value", one)["state"] for one in newest[:2]] == [{"flights": 2}, {"flights": 3}]
    body |= {"at": at(0.5)}  # type: ignore[dict-item]
    then = (await instance.ask(f"{PATH}:batchGet", "POST", body=json.dumps(body).encode())).json["answers"]
    assert [one.get("type", "found") for one in then] == ["found", "no_window", "never_seen"]
    body |= {"fields": "state.flights"}  # type: ignore[dict-item]
    part = (await instance.ask(f"{PATH}:batchGet", "POST", body=json.dumps(body).encode())).json["answers"]
    assert [one.get("value") for one in part] == [{"state": {"flights": 1}}, None, None]


async def test_the_listing_has_the_newest_window_of_each_key(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for hour in (0, 1):
        written.put("JFK", hour, flights=hour, carrier="UA")
    written.put("LGA", 0, flights=7, carrier="UA")
    found = (await instance.ask(f"{PATH}?where=state.carrier:UA")).json
    assert [(one["key"], one["value"]["state"]["flights"]) for one in found["items"]] == [("JFK", 1), ("LGA", 7)]
    (listed,) = (await instance.ask("/v1/states")).json["states"]
    assert (listed["window_s"], listed["every_s"], listed["remember_s"]) == (3600, 3600, 12 * 3600)


async def test_any_instance_answers_for_the_windows_of_any_key(tmp_path: Path) -> None:
    async with two_instances(tmp_path) as instances:
        for key in KEYS:
            for hour in (0, 1, 2):
                instances.put(key, hour, flights=hour)
        for key in KEYS:
            for instance in instances[:2]:
                then = await instance.ask(f"{PATH}/{key}?at={at(1)}")
                assert (then.json["instance"], then.json["value"]["state"]) == (
                    ("one", "two")[owner_of(key)],
                    {"flights": 1},
                )
                last = (await instance.ask(f"{PATH}/{key}/windows?order=desc&limit=2")).json
                assert [found["window_start"] for found in last["windows"]] == [answered_at(2), answered_at(1)]
                more = (await instance.ask(f"{PATH}/{key}/windows?order=desc&cursor={last['cursor']}")).json
                assert [found["window_start"] for found in more["windows"]] == [answered_at(0)]
        body = json.dumps({"keys": KEYS, "at": at(0)}).encode()
        answers = (await instances.one.ask(f"{PATH}:batchGet", "POST", body=body)).json["answers"]
        assert [found["key"] for found in answers] == KEYS
        assert {found["window_start"] for found in answers} == {answered_at(0)}


async def test_states_without_windows_have_no_queries_of_windows() -> None:
    async with answering(dependencies_of(a_state()), hot=True) as instance:
        for path in ("UA1?at=2023-11-14T12:00:00Z", "UA1/windows", "UA1/versions?at=2023-11-14T12:00:00Z"):
            assert (await instance.ask(f"/v1/states/flights/{path}")).kind == "bad_request"
        body = json.dumps({"keys": ["UA1"], "at": at(0)}).encode()
        assert (await instance.ask("/v1/states/flights:batchGet", "POST", body=body)).kind == "bad_request"
