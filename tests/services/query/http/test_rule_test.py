"""POST of a rule that is tested before it is saved."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from services.query.cluster import Member, PartitionStatus, Role
from services.query.http import rule_test_routes
from services.query.http.cursor import encode_cursor
from services.query.http.rule_test_routes import SLICE
from services.query.http.table_routes import TableRoutes, tables_of
from tests.services.derive.alerted import Limit
from tests.services.query.alerting import STATES, SUITE, WINDOW, Sensors, WrittenRows, sensors
from tests.services.query.http.instance import Instance, Peers
from tests.services.query.in_memory import MemoryRouting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from services.query.http.table_routes import DeclaredTable

RULE = {"high": 5, "low": 4}
PATH = "/v1/tables/limits/rule/test"
WRITER = {"Authorization": "Bearer a-secret-of-an-operator"}


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    routing: MemoryRouting | None = None,
    peers: Peers | None = None,
    tables: Mapping[str, DeclaredTable] | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Instance, Sensors]]:
    with sensors(folder, routing=routing, **settings) as (dependencies, written):
        declared = tables or tables_of(SUITE)
        others = [TableRoutes(declared, WrittenRows(written))]
        made = Instance(dependencies, hot=True, peer_client=peers, others=others, tables=declared)
        async with made.server.serving() as made.port:
            yield made, written


async def outcome(
    instance: Instance, rule: dict[str, Any] | None = None, path: str = PATH, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """The result of all pages."""
    sums: dict[str, Any] = {}
    body, cursor = orjson.dumps(rule or RULE), ""
    while True:
        page = await instance.ask(f"{path}{'&' if '?' in path else '?'}{cursor}".rstrip("?&"), "POST", headers, body)
        assert page.status == 200, page.body
        (found,) = page.json["results"]
        opening, closing = found.pop("opening"), found.pop("closing")
        found |= {"opening": opening["keys"], "closing": closing["keys"]}
        assert (opening["count"], closing["count"]) == (len(opening["keys"]), len(closing["keys"]))
        for name in ("alerts", "failure"):
            sums[name] = found.pop(name) or sums.get(name)
        for name, value in found.items():
            sums[name] = sums[name] + value if name in sums else value
        sums["pages"] = sums.get("pages", 0) + 1
        if page.json["cursor"] is None:
            return sums
        cursor = f"cursor={page.json['cursor']}"


def populate(written: Sensors) -> None:
    """Rooms a-0 to a-9 and b-0 to b-9, whose values are 0 to 9, and a rule that has alerts open from 8 on."""
    written.put("rule", Limit(high=8, low=8))
    for number in range(10):
        written.measure(f"a-{number}", number)
        written.measure(f"b-{number}", number)


async def test_a_rule_is_tested_against_the_present_states(tmp_path: Path) -> None:
    async with serving(tmp_path) as (instance, written):
        populate(written)
        lower = await outcome(instance)
        assert lower["opening"] == ["a-5", "a-6", "a-7", "b-5", "b-6", "b-7"]
        assert (lower["closing"], lower["evaluated"], lower["open"], lower["pending"]) == ([], 20, 10, 0)
        assert (lower["alerts"], lower["failed"], lower["failure"]) == ("too_high", 0, None)
        higher = await outcome(instance, {"high": 9, "low": 9})
        assert (higher["opening"], higher["closing"], higher["open"]) == ([], ["a-8", "b-8"], 2)
        delayed = await outcome(instance, RULE | {"hold": "P1D"})
        assert (delayed["open"], delayed["pending"], delayed["closing"]) == (0, 10, ["a-8", "a-9", "b-8", "b-9"])
        fewer = await outcome(instance, RULE | {"keys": "a-*"})
        assert fewer["opening"] == ["a-5", "a-6", "a-7"]
        assert (fewer["closing"], fewer["evaluated"]) == (["b-8", "b-9"], 10)
        one = await outcome(instance, RULE | {"keys": "a-7"})
        assert (one["opening"], one["closing"], one["evaluated"]) == (["a-7"], ["a-8", "a-9", "b-8", "b-9"], 1)
        another = await outcome(instance, path="/v1/tables/limits/another/test")
        assert (another["open"], len(another["opening"]), another["closing"]) == (10, 10, [])
        assert written.rows.keys() == {"rule"}, "nothing is saved"


async def test_saving_a_rule_has_the_tested_effect(tmp_path: Path) -> None:
    async with serving(tmp_path) as (instance, written):
        populate(written)
        for rule in (Limit(high=3, low=2), Limit(keys="b-*", high=6, low=1), Limit(keys="?-4", high=1, low=1)):
            announced = await outcome(instance, json.loads(rule.model_dump_json()))
            before = await open_keys(instance)
            written.put("rule", rule)
            after = await open_keys(instance)
            assert set(announced["opening"]) == after - before
            assert set(announced["closing"]) == before - after
            assert announced["open"] == len(after)


async def open_keys(instance: Instance) -> set[str]:
    page = await instance.ask("/v1/states/too_high?where=status:open")
    return {one["key"] for one in page.json["items"]}


async def test_only_the_newest_window_of_a_key_counts(tmp_path: Path) -> None:
    async with serving(tmp_path) as (instance, written):
        written.put("rule", Limit(high=8, low=8))
        written.measure("a", 9, WINDOW - timedelta(hours=1))
        written.measure("a", 1)
        found = await outcome(instance)
        assert (found["evaluated"], found["opening"], found["closing"]) == (1, [], [])


async def test_a_condition_that_raises_is_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as (instance, written):
        written.measure("a", 9)
        written.measure("b", None)
        found = await outcome(instance)
        assert (found["failed"], found["failure"], found["opening"]) == (1, "KeyError: 'value'", ["a"])


@pytest.mark.parametrize("limit", [1, 7, SLICE])
async def test_a_test_is_paged(tmp_path: Path, limit: int) -> None:
    async with serving(tmp_path) as (instance, written):
        populate(written)
        path = f"{PATH}?limit={limit}"
        for rule in (RULE, RULE | {"keys": "b-*"}):
            whole, pages = await outcome(instance, rule), await outcome(instance, rule, path)
            assert pages.pop("pages") >= min(10, 20 // limit)
            whole.pop("pages")
            assert pages == whole


async def test_a_long_test_continues_on_the_next_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_test_routes, "WITHIN_S", 0)
    monkeypatch.setattr(rule_test_routes, "SLICE", 4)
    async with serving(tmp_path) as (instance, written):
        populate(written)
        found = await outcome(instance)
        assert (found["pages"], found["evaluated"], found["open"]) == (6, 20, 10)


async def test_a_slow_condition_delays_no_other_request(tmp_path: Path) -> None:
    entered, released = threading.Event(), threading.Event()

    def slow(*_: object) -> bool:
        entered.set()
        return released.wait(30)

    tables = {
        name: one._replace(alerts=tuple(replace(alerts, opens=slow, closes=None) for alerts in one.alerts))
        for name, one in tables_of(SUITE).items()
    }
    async with serving(tmp_path, tables=tables) as (instance, written):
        written.measure("a", 1)
        testing = asyncio.create_task(outcome(instance))
        try:
            assert await asyncio.to_thread(entered.wait, 30)
            assert (await instance.ask("/v1/states/sensors/a")).status == 200
            assert not testing.done()
        finally:
            released.set()
        assert (await testing)["opening"] == ["a"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"high": "much", "low": 4}', ["high"]),
        (b'{"low": 4, "hold": -1}', ["hold", "high"]),
        (b'{"high": 5, "low": 4, "lo": 4}', ["lo"]),
        (b"[]", [""]),
    ],
)
async def test_an_invalid_rule_is_rejected_with_its_fields(tmp_path: Path, body: bytes, fields: list[str]) -> None:
    async with serving(tmp_path) as (instance, _):
        for path, method in ((PATH, "POST"), ("/v1/tables/limits/rule", "PUT")):
            rejected = await instance.ask(path, method, body=body)
            assert (rejected.status, rejected.kind) == (400, "bad_request")
            assert [one["field"] for one in rejected.json["fields"]] == fields
            assert all(one["detail"] for one in rejected.json["fields"])


async def test_a_rule_that_cannot_be_tested_is_a_problem(tmp_path: Path) -> None:
    plain = {name: one._replace(alerts=()) for name, one in tables_of(SUITE).items()}
    async with serving(tmp_path, tables=plain) as (instance, _):
        body = orjson.dumps(RULE)
        assert (await instance.ask(PATH, "POST", body=body)).status == 400
        assert (await instance.ask("/v1/tables/others/k/test", "POST", body=body)).kind == "unknown_state"
        assert (await instance.ask(PATH, "GET")).status == 405
    async with serving(tmp_path / "again") as (instance, _):
        for query in ("limit=0", "limit=1000000", "cursor=x", "cursor=WzksbnVsbF0x", "cursor=WzIsbnVsbF0", "unknown=1"):
            assert (await instance.ask(f"{PATH}?{query}", "POST", body=body)).kind == "bad_request"
        refused = await instance.ask(PATH, "POST", body=orjson.dumps(RULE | {"keys": "a" * 5000 + "*"}))
        assert (refused.kind, refused.json["detail"][:5]) == ("bad_request", "keys:")


async def test_a_token_tests_only_rules_that_it_may_save_and_keys_that_it_may_read(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(
        json.dumps(
            {
                "tokens": [
                    {"name": "operator", "token": "a-secret-of-an-operator", "writes": ["limits"]},
                    {"name": "reader", "token": "a-secret-of-a-reader"},
                    {"name": "blind", "token": "a-secret-of-a-blind", "writes": ["*"], "states": ["limits"]},
                    {"name": "part", "token": "a-secret-of-a-part-of-it", "writes": ["*"], "keys": ["a-", "rule"]},
                ]
            }
        )
    )

    def sent(name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer a-secret-of-{name}"}

    async with serving(tmp_path / "data", tokens=tokens) as (instance, written):
        populate(written)
        body = orjson.dumps(RULE)
        for headers, status in (({}, 401), (sent("a-reader"), 403), (sent("a-blind"), 403), (WRITER, 200)):
            assert (await instance.ask(PATH, "POST", headers, body)).status == status
        part = sent("a-part-of-it")
        assert (await instance.ask(PATH, "POST", part, body)).kind == "not_yours", "the rule concerns all keys"
        found = await outcome(instance, RULE | {"keys": "a-*"}, headers=part)
        assert (found["opening"], found["closing"]) == (["a-5", "a-6", "a-7"], [])
        whole = RULE | {"keys": "a-*"}
        others = encode_cursor([1, None])
        for headers, status in ((WRITER, 200), (part, 400)):
            forged = await instance.ask(f"{PATH}?cursor={others}", "POST", headers, orjson.dumps(whole))
            assert forged.status == status
            assert (b"b-8" in forged.body) is (status == 200)
        listed = await instance.ask("/v1/tables", headers=part)
        (table,) = listed.json["tables"]
        assert (table["name"], table["alerts"], table["writes"]) == ("limits", ["too_high"], True)
        assert (table["application"], table["prefixes"]) == ("sensors", ["a-", "rule"])
        assert table["schema"]["properties"].keys() == {"keys", "hold", "high", "low"}
        reader = await instance.ask("/v1/tables", headers=sent("a-reader"))
        assert reader.json["tables"][0]["writes"] is False


async def test_the_rate_of_a_token_counts_the_states(tmp_path: Path) -> None:
    async with serving(tmp_path, rate=5) as (instance, written):
        populate(written)
        body = orjson.dumps(RULE)
        assert (await instance.ask(PATH, "POST", body=body)).status == 200
        assert (await instance.ask(PATH, "POST", body=body)).kind == "too_many"


async def test_the_states_of_all_instances_count(tmp_path: Path) -> None:
    peers, made = Peers(), []
    for own, name in enumerate(("one", "two")):
        routing = MemoryRouting()
        numbers = range(STATES["sensors"].partitions)
        routing.others = {number: PartitionStatus(Role.ELSEWHERE, 0) for number in numbers if number % 2 != own}
        routing.known = [Member(("two", "one")[own], "http://unused")]
        made.append((tmp_path / name, routing, name))
    async with (
        serving(made[0][0], routing=made[0][1], peers=peers, instance="one") as (first, written),
        serving(made[1][0], routing=made[1][1], peers=peers, instance="two") as (second, also),
    ):
        peers.instances = {"one": first, "two": second}
        populate(written)  # each instance answers only for its own partitions
        populate(also)
        for instance in (first, second):
            found = await outcome(instance, RULE | {"keys": "a-*"}, f"{PATH}?limit=3")
            assert sorted(found["opening"]) == ["a-5", "a-6", "a-7"]
            assert (sorted(found["closing"]), found["evaluated"]) == (["b-8", "b-9"], 10)
