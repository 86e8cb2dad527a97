"""PUT and DELETE of rows of reference tables."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import orjson
import pytest
from pydantic import BaseModel, ConfigDict

from contracts import Table
from services.query.http.table_routes import DeclaredTable, TableRoutes
from services.runtime.errors import RowNotWrittenError
from tests.services.query.http.instance import Instance
from tests.services.query.in_memory import a_state, dependencies_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

OPERATOR = {"Authorization": "Bearer a-secret-of-an-operator"}
DASHBOARD = {"Authorization": "Bearer a-secret-of-a-dashboard"}
GUEST = {"Authorization": "Bearer a-secret-of-a-guest-of-ours"}


class Limit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    speed: float


class MemoryTables:
    """Rows with the number of the write as version, and the record of each."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, bytes | None, str]] = []
        self.versions: dict[str, int] = {}
        self.is_away = False

    def version(self, topic: str, key: str) -> int | None:
        assert topic == "limits.topic"
        return self.versions.get(key)

    def write(self, topic: str, key: str, value: bytes | None, author: str) -> int:
        if self.is_away:
            raise RowNotWrittenError(topic, key, "no broker answers")
        self.records.append((topic, key, value, author))
        self.versions[key] = len(self.records)
        if value is None:
            del self.versions[key]
        return len(self.records)


@pytest.fixture
def store() -> MemoryTables:
    return MemoryTables()


def _instance(store: MemoryTables, tokens: Path | None) -> Instance:
    routes = TableRoutes({"limits": DeclaredTable(Table("limits", Limit), "limits.topic", "limited")}, store)
    return Instance(dependencies_of(a_state(), tokens=tokens), hot=True, others=[routes])


@pytest.fixture
async def instance(store: MemoryTables) -> AsyncIterator[Instance]:
    made = _instance(store, None)
    async with made.server.serving() as made.port:
        yield made


@pytest.fixture
async def guarded(store: MemoryTables, tmp_path: Path) -> AsyncIterator[Instance]:
    tokens = tmp_path / "tokens.json"
    listed = [
        {"name": "operator", "token": "a-secret-of-an-operator", "writes": ["*"]},
        {"name": "dashboard", "token": "a-secret-of-a-dashboard", "writes": ["limits"], "keys": ["north-"]},
        {"name": "guest", "token": "a-secret-of-a-guest-of-ours"},
    ]
    tokens.write_text(json.dumps({"tokens": listed}))
    made = _instance(store, tokens)
    async with made.server.serving() as made.port:
        yield made


async def test_a_row_is_written_with_its_author(instance: Instance, store: MemoryTables) -> None:
    written = await instance.ask("/v1/tables/limits/s%2F1", "PUT", body=b'{"speed": 5}')
    assert (written.status, orjson.loads(written.body)) == (200, {"table": "limits", "key": "s/1", "version": 1})
    removed = await instance.ask("/v1/tables/limits/s%2F1", "DELETE")
    assert orjson.loads(removed.body)["version"] == 2
    (first, (*_, value, author)) = store.records
    assert orjson.loads(first[2] or b"") == {"value": {"speed": 5.0}, "author": "anonymous"}
    assert (value, author) == (None, "anonymous")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"sped": 5}', b'{"speed": "much"}'])
async def test_an_invalid_row_is_rejected(instance: Instance, store: MemoryTables, body: bytes) -> None:
    refused = await instance.ask("/v1/tables/limits/s1", "PUT", body=body)
    assert (refused.status, orjson.loads(refused.body)["type"]) == (400, "bad_request")
    assert not store.records


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_key_that_no_row_may_have_is_rejected(instance: Instance, store: MemoryTables, method: str) -> None:
    refused = await instance.ask(f"/v1/tables/limits/{'x' * 501}", method, body=b'{"speed": 5}')
    assert (refused.status, refused.kind) == (400, "bad_request")
    assert not store.records


async def test_a_row_that_changed_meanwhile_is_not_replaced(instance: Instance, store: MemoryTables) -> None:
    path, row = "/v1/tables/limits/s1", b'{"speed": 5}'
    absent = await instance.ask(path, "PUT", {"If-Match": "*"}, row)
    assert (absent.status, orjson.loads(absent.body)["type"]) == (412, "changed")
    await instance.ask(path, "PUT", body=row)
    again = await asyncio.gather(*(instance.ask(path, "PUT", {"If-Match": '"1"'}, row) for _ in range(5)))
    assert sorted(one.status for one in again) == [200, 412, 412, 412, 412], "of writers at once, one wins"
    assert (await instance.ask(path, "DELETE", {"If-Match": '"1"'})).status == 412
    assert (await instance.ask(path, "DELETE", {"If-Match": '"7", "2"'})).status == 200
    assert len(store.records) == 3


async def test_a_token_writes_only_what_it_may(guarded: Instance, store: MemoryTables) -> None:
    row = b'{"speed": 5}'
    for headers, key, status in (
        ({}, "north-1", 401),
        (GUEST, "north-1", 403),
        (DASHBOARD, "south-1", 403),
        (DASHBOARD, "north-1", 200),
        (OPERATOR, "south-1", 200),
    ):
        for method, body in (("PUT", row), ("DELETE", b"")):
            assert (await guarded.ask(f"/v1/tables/limits/{key}", method, headers, body)).status == status
    assert [author for *_, author in store.records] == ["dashboard"] * 2 + ["operator"] * 2
    assert (await guarded.ask("/v1/tables/others/k", "PUT", DASHBOARD, row)).status == 403
    assert (await guarded.ask("/v1/tables/others/k", "PUT", OPERATOR, row)).status == 404


async def test_a_failed_write_is_a_problem(instance: Instance, store: MemoryTables) -> None:
    store.is_away = True
    failed = await instance.ask("/v1/tables/limits/s1", "PUT", body=b'{"speed": 5}')
    assert (failed.status, failed.kind, failed.headers["Retry-After"]) == (503, "not_written", "1")


async def test_a_page_of_another_origin_may_not_write(instance: Instance, store: MemoryTables) -> None:
    foreign = await instance.ask("/v1/tables/limits/s1", "PUT", {"Origin": "https://example.org"}, b'{"speed": 5}')
    assert (foreign.status, store.records) == (403, [])
