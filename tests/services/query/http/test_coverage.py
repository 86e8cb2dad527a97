"""Requests for the coverage of a key."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from contracts.model.named_state import CoverageField
from tests.services.query.http.instance import Instance, answering
from tests.services.query.http.two_instances import owner_of, two_instances
from tests.services.query.in_memory import NOW, a_state, dependencies_of
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, Departures, answered_at, at, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PATH = "/v1/states/departures"
MINUTE = timedelta(minutes=1)
STATE = replace(DEPARTURES, coverage=(CoverageField("state.seen", MINUTE),), expires_by_clock=True)
"""Its clock is at 22:13:20, so that windows from 9:55 on are remembered."""
ALL = [[0, 60]]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Instance, Departures]]:
    with departures(tmp_path, state=STATE) as (dependencies, written):
        written.store.advance_watermark(NOW - 5 * 60_000)
        written.store.close_windows(NOW - 5 * 60_000)
        async with answering(dependencies, hot=True) as instance:
            yield instance, written


def intervals(body: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return the kind, start and end of each interval, in hours after noon."""
    hours = {answered_at(minute / 60): minute / 60 for minute in range(-24 * 60, 24 * 60)}
    assert all(one["to"] == other["from"] for one, other in zip(body["intervals"], body["intervals"][1:], strict=False))
    return [(one["kind"], hours[one["from"]], hours[one["to"]]) for one in body["intervals"]]


async def test_the_coverage_of_a_range(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("p1", 8, seen=ALL)
    written.put("p1", 9, seen=[[0, 30], [45, 60]])
    written.put("p1", 10, seen=[[0, 6]])
    found = await instance.ask(f"{PATH}/p1/coverage?from={at(6)}&to={at(11)}")
    members = list(found.json)
    assert members[:6] == ["state", "key", "field", "step_s", "from", "to"]
    assert intervals(found.json) == [
        ("gap", 6, 8),
        ("data", 8, 9.5),
        ("gap", 9.5, 9.75),
        ("data", 9.75, 10.1),
        ("gap", 10.1, 10 + 13 / 60),
        ("open", 10 + 13 / 60, 11),
    ]
    assert (found.json["field"], found.json["step_s"], found.json["next"]) == ("state.seen", 60, None)
    assert found.json["final_until"] == answered_at(10)
    assert found.headers["Cache-Control"] == "no-store"
    default = await instance.ask(f"{PATH}/p1/coverage")
    assert (default.json["from"], default.json["to"]) == (answered_at(8), answered_at(11))
    within = await instance.ask(f"{PATH}/p1/coverage?from={at(9.25)}&to={at(9.6)}&field=state.seen")
    assert intervals(within.json) == [("data", 9.25, 9.5), ("gap", 9.5, 9.6)]
    nothing = await instance.ask(f"{PATH}/p1/coverage?from={at(9)}&to={at(9)}")
    assert (nothing.status, nothing.json["intervals"]) == (200, [])


async def test_forgotten_time_is_unknown_and_no_gap(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("p1", -3, seen=ALL)  # older than the store remembers
    written.put("p1", -1, seen=ALL)
    written.put("p1", 0, other=1)  # before the field was declared
    found = (await instance.ask(f"{PATH}/p1/coverage?from={at(-4)}&to={at(2)}")).json
    oldest = round((NOW - 5 * 60_000 - 13 * HOUR - NOON) / HOUR + 0.5)
    assert oldest == -2
    assert intervals(found) == [
        ("unknown", -4, -2),
        ("gap", -2, -1),
        ("data", -1, 0),
        ("unknown", 0, 1),
        ("gap", 1, 2),
    ]
    assert (await instance.ask(f"{PATH}/other/coverage")).kind == "never_seen"


async def test_time_before_the_year_1_is_unknown(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("p1", 8, seen=ALL)
    found = await instance.ask(f"{PATH}/p1/coverage?from={quote('0001-01-01T00:00:00+14:00')}&to={at(-4)}")
    assert (found.status, found.json["from"]) == (200, "0001-01-01T00:00:00.000Z")
    assert [one["kind"] for one in found.json["intervals"]] == ["unknown"]


async def test_a_long_range_is_answered_in_parts(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    for hour in range(6):
        written.put("p1", hour, seen=[[hour, 60]])
    query, parts, found = f"from={at(-1)}&", 0, list[tuple[str, float, float]]()
    while query:
        part = (await instance.ask(f"{PATH}/p1/coverage?{query}to={at(7)}&limit=2")).json
        found += intervals(part)
        assert part["next"] in {None, part["to"]}
        query, parts = part["next"] and f"from={part['next']}&", parts + 1
    whole = intervals((await instance.ask(f"{PATH}/p1/coverage?from={at(-1)}&to={at(7)}")).json)
    assert parts == 3
    assert [one for one in found if one[0] == "gap"] == [one for one in whole if one[0] == "gap"]
    assert found[0] == ("gap", -1, 0)
    assert found[-1] == ("gap", 6, 7)


async def test_a_time_is_covered_if_any_of_its_overlapping_windows_has_it(tmp_path: Path) -> None:
    state = replace(STATE, every=timedelta(minutes=15))
    with departures(tmp_path, state=state) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            written.put("p1", 7.5, seen=[[0, 35]])  # the last event began before the next windows
            written.put("p1", 8.25, seen=[[5, 10]])
            found = (await instance.ask(f"{PATH}/p1/coverage?from={at(8)}&to={at(9)}")).json
            rest = (await instance.ask(f"{PATH}/p1/coverage?from={at(8)}&to={at(9)}&limit=1")).json
    assert intervals(found) == [
        ("data", 8, 8 + 5 / 60),
        ("gap", 8 + 5 / 60, 8 + 20 / 60),
        ("data", 8 + 20 / 60, 8 + 25 / 60),
        ("gap", 8 + 25 / 60, 9),
    ]
    assert rest == found | {"next": None}


async def test_in_a_replay_the_time_is_that_of_the_records(tmp_path: Path) -> None:
    with departures(tmp_path, state=replace(STATE, expires_by_clock=False)) as (dependencies, written):
        async with answering(dependencies, hot=True) as instance:
            written.put("p1", 0, seen=[[0, 5]])
            written.put("p2", 0.5, seen=[])
            found = (await instance.ask(f"{PATH}/p1/coverage")).json
    assert intervals(found) == [("data", 0, 5 / 60), ("gap", 5 / 60, 25 / 60), ("open", 25 / 60, 1)]


async def test_invalid_requests_are_rejected(served: tuple[Instance, Departures]) -> None:
    instance, written = served
    written.put("p1", 8, seen=ALL)
    for query in (f"from={at(9)}&to={at(8)}", "field=state.flights", "from=noon", "limit=0", "limit=1001", "x=1"):
        found = await instance.ask(f"{PATH}/p1/coverage?{query}")
        assert found.kind == "bad_request", query
    assert "fields with coverage are state.seen" in (await instance.ask(f"{PATH}/p1/coverage?field=a")).json["detail"]
    (listed,) = (await instance.ask("/v1/states")).json["states"]
    assert listed["coverage"] == [{"path": "state.seen", "step_s": 60}]


async def test_a_state_without_coverage_and_with_several(tmp_path: Path) -> None:
    async with answering(dependencies_of(a_state()), hot=True) as instance:
        assert (await instance.ask("/v1/states/flights/UA1/coverage")).kind == "bad_request"
    both = (*STATE.coverage, CoverageField("state.other", MINUTE))
    with departures(tmp_path, state=replace(STATE, coverage=both)) as (dependencies, written):
        written.put("p1", 8, seen=ALL, other=[])
        async with answering(dependencies, hot=True) as instance:
            assert (await instance.ask(f"{PATH}/p1/coverage")).kind == "bad_request"
            found = (await instance.ask(f"{PATH}/p1/coverage?field=state.other&to={at(9)}")).json
    assert intervals(found) == [("gap", 8, 9)]


async def test_any_instance_answers_for_the_coverage_of_any_key(tmp_path: Path) -> None:
    keys = [f"patient-{number}" for number in range(8)]
    async with two_instances(tmp_path, STATE) as instances:
        for key in keys:
            instances.put(key, 8, seen=[[0, 30]])
        for key in keys:
            for instance in instances[:2]:
                found = (await instance.ask(f"{PATH}/{key}/coverage?to={at(9)}")).json
                assert found["instance"] == ("one", "two")[owner_of(key)]
                assert intervals(found) == [("data", 8, 8.5), ("gap", 8.5, 9)]
