"""Requests and responses below /v1/states: the fast path and aiohttp return the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from typing_extensions import override

from contracts.model.named_state import QueryOptions
from services.query.cluster import PartitionStatus, Role
from services.query.store import Store
from tests.services.query.http.flights import routing, store
from tests.services.query.http.instance import Instance, answering
from tests.services.query.in_memory import NOW, ScratchStore, a_state, dependencies_of

if TYPE_CHECKING:
    from services.query.store import Entry

HOUR = 3_600_000
KEYS = ["UA1", "a/b c?d#e", "ключ", "%2F", "..", "a:batchGet", "{x}", "\n\t\x00", "", "ÿ" * 40, "+&=", "'\"\\"]


async def test_a_response_has_the_source_and_role(instance: Instance) -> None:
    store(instance).put("UA1", version=3, event_time=NOW - 1500, partition=2, offset=41)
    routing(instance).own = PartitionStatus(Role.STANDBY, 6)
    response = await instance.ask("/v1/states/flights/UA1")
    assert response.status == 200
    assert response.json == {
        "state": "flights",
        "key": "UA1",
        "epoch": 0,
        "version": 3,
        "window_start": "2023-11-14T22:13:20.000Z",
        "event_time": "2023-11-14T22:13:18.500Z",
        "age_ms": 1500,
        "source": {"topic": "flights-topic", "partition": 2, "offset": 41},
        "lag": {"records": 6},
        "role": "standby",
        "instance": "one",
        "value": {"a": {"b": 1}},
    }
    assert response.headers["ETag"] == f'"{NOW}.0.3"'
    assert response.headers["Cache-Control"] == "max-age=2"
    assert (response.headers["Stateloop-Role"], response.headers["Stateloop-Lag"]) == ("standby", "6")
    assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("key", [key for key in KEYS if key])
async def test_a_key_may_be_any_text(instance: Instance, key: str) -> None:
    store(instance).put(key)
    response = await instance.ask(f"/v1/states/flights/{quote(key, safe='')}")
    assert (response.status, response.json["key"]) == (200, key)
    assert (await instance.ask(f"/v1/states/flights/{quote(key, safe='')}/versions")).status == 200


@pytest.mark.parametrize("raw", ["%FF", "%C3%28", "a%ED%A0%80"])
async def test_a_key_that_is_not_utf8_is_rejected(instance: Instance, raw: str) -> None:
    response = await instance.ask(f"/v1/states/flights/{raw}")
    assert (response.status, response.kind) == (400, "bad_request")


async def test_never_seen_expired_and_catching_up_differ(instance: Instance) -> None:
    store(instance).put("old", window_start=NOW - HOUR - 1, partition=1)
    store(instance).put("new")
    never = await instance.ask("/v1/states/flights/UA2")
    assert (never.status, never.kind, never.json["remembered_since"]) == (404, "never_seen", "2023-11-14T20:13:20.000Z")
    gone = await instance.ask("/v1/states/flights/old")
    assert (gone.status, gone.kind, gone.json["version"], gone.json["key"]) == (410, "expired", 1, "old")
    routing(instance).others[1] = PartitionStatus(Role.CATCHING_UP, 12)
    early = await instance.ask("/v1/states/flights/old")
    assert (early.status, early.kind, early.headers["Retry-After"]) == (503, "catching_up", "1")
    assert early.json["lag"] == {"records": 12}
    assert {one.headers["Content-Type"] for one in (never, gone, early)} == {"application/problem+json"}
    assert {one.headers["Cache-Control"] for one in (never, gone, early)} == {"no-store"}


async def test_a_key_of_another_owner_is_misdirected_in_a_single_instance(instance: Instance) -> None:
    store(instance).put("UA1")
    routing(instance).own = PartitionStatus(Role.ELSEWHERE, 0)
    response = await instance.ask("/v1/states/flights/UA1")
    assert (response.status, response.kind) == (421, "elsewhere")


async def test_a_version_that_the_client_has_is_not_sent_again(instance: Instance) -> None:
    store(instance).put("UA1", version=3)
    async with instance.connected() as connection:
        for named, expected in ((f'"{NOW}.0.3"', 304), (f'"{NOW}.0.2"', 200), ("*", 304)):
            connection.send(
                f"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {named}\r\n\r\n".encode()
            )
            response = await connection.response()
            assert response.status == expected
            assert response.headers["ETag"] == f'"{NOW}.0.3"'
            assert bool(response.body) == (expected == 200)


async def test_fields_select_parts_of_the_value(instance: Instance) -> None:
    store(instance).put("UA1", value=b'{"a": {"b": 1, "c": [1, 18446744073709551617]}, "d": null}')
    for fields, expected in (
        ("a.b", {"a": {"b": 1}}),
        ("a.c,d", {"a": {"c": [1, 2**64 + 1]}, "d": None}),
        ("a.b.c,e", {}),
        ("a,a.b", {"a": {"b": 1, "c": [1, 2**64 + 1]}}),
        ("a.b,a", {"a": {"b": 1, "c": [1, 2**64 + 1]}}),
    ):
        response = await instance.ask(f"/v1/states/flights/UA1?fields={fields}")
        assert response.json["value"] == expected, fields


async def test_fields_of_a_deeply_nested_value_are_rejected(instance: Instance) -> None:
    store(instance).put("deep", value=b'{"a":' * 1000 + b"1" + b"}" * 1000)
    store(instance).put("flat")
    for rest in ("deep?", "deep/versions?"):
        response = await instance.ask(f"/v1/states/flights/{rest}fields=a.a")
        assert (response.status, response.kind) == (400, "bad_request")
        assert "fields=" in response.json["detail"]
    assert (await instance.ask("/v1/states/flights?fields=a.a")).status == 400
    body = json.dumps({"keys": ["deep", "flat"], "fields": "a.b"}).encode()
    first, second = (await instance.ask("/v1/states/flights:batchGet", "POST", body=body)).json["answers"]
    assert (first["type"], first["key"]) == ("bad_request", "deep")
    assert second["value"] == {"a": {"b": 1}}
    long = ".".join("a" * 2000)
    assert (await instance.ask(f"/v1/states/flights/flat?fields={long}")).json["value"] == {}


async def test_an_earlier_version_is_returned_while_it_is_kept(instance: Instance) -> None:
    for version in range(1, 6):
        store(instance).put("UA1", version=version)
    assert (await instance.ask("/v1/states/flights/UA1?as_of=4")).json["version"] == 4
    response = await instance.ask("/v1/states/flights/UA1?as_of=1")
    assert (response.status, response.kind, response.json["latest"]) == (404, "version_not_kept", f"{NOW}.0.5")
    versions = await instance.ask("/v1/states/flights/UA1/versions")
    assert [one["version"] for one in versions.json["versions"]] == [3, 4, 5]
    assert (await instance.ask("/v1/states/flights/UA2/versions")).kind == "never_seen"


class Restless(ScratchStore):
    """A store that gets the next version during each read, as from the ingest thread."""

    @override
    def get(self, key: str, time: int | None = None) -> Entry | None:
        found = super().get(key, time)
        self._continue(key, found)
        return found

    @override
    def versions(self, key: str, time: int | None = None) -> list[Entry]:
        found = super().versions(key, time)
        self._continue(key, found[-1])
        return found

    def _continue(self, key: str, entry: Entry | None) -> None:
        assert entry is not None
        self.put(key, version=entry.version + 1)


@pytest.mark.parametrize("rest", ["/versions", "?as_of=1"])
async def test_a_response_is_read_from_one_snapshot_of_the_store(rest: str) -> None:
    state = a_state(query=QueryOptions(history=2))
    restless = Restless(state)
    restless.put("UA1")
    async with answering(dependencies_of(state, stores={"flights": restless}), hot=False) as instance:
        response = await instance.ask(f"/v1/states/flights/UA1{rest}")
    assert response.headers["ETag"] == f'"{NOW}.0.1"'
    assert [one["version"] for one in response.json.get("versions", [response.json])] == [1]
    assert [one.version for one in Store.versions(restless, "UA1")] == [1, 2], "it was read once"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("min_version=x", "min_version"),
        ("min_offset=12", "min_offset"),
        ("min_offset=0:-1", "min_offset"),
        ("min_offset=0:12&min_offset=0:13", "twice"),
        ("wait=-1", "wait"),
        ("wait=31", "30 seconds"),
        ("as_of=-1", "as_of"),
        ("as_of=1&as_of=2", "twice"),
        ("fields=", "fields"),
        ("fields=a..b", "fields"),
        ("filds=a", "filds"),
        ("min_version=99999999999999999999999999", "min_version"),
    ],
)
async def test_an_invalid_parameter_is_named(instance: Instance, query: str, message: str) -> None:
    response = await instance.ask(f"/v1/states/flights/UA1?{query}")
    assert (response.status, response.kind) == (400, "bad_request")
    assert message in response.json["detail"]


async def test_a_batch_answers_each_key_in_order(instance: Instance) -> None:
    store(instance).put("old", window_start=NOW - HOUR - 1)
    store(instance).put("UA1", version=2)
    body = json.dumps({"keys": ["UA1", "old", "", "UA1"]}).encode()
    response = await instance.ask("/v1/states/flights:batchGet", "POST", body=body)
    assert response.status == 200
    first, second, third, last = response.json["answers"]
    assert first == last
    assert (first["key"], first["version"], first["value"]) == ("UA1", 2, {"a": {"b": 1}})
    assert (second["type"], second["status"], second["key"]) == ("expired", 410, "old")
    assert (third["type"], third["status"], third["key"]) == ("never_seen", 404, "")
    part = json.dumps({"keys": ["UA1"], "fields": "a.x"}).encode()
    response = await instance.ask("/v1/states/flights:batchGet", "POST", body=part)
    assert response.json["answers"][0]["value"] == {}


@pytest.mark.parametrize(
    "body", [b"", b"x", b"[]", b'{"keys": 1}', b'{"keys": [1]}', b'{"kees": []}', b'{"keys": ["\\ud800"]}', b"{}"]
)
async def test_an_invalid_batch_is_rejected(instance: Instance, body: bytes) -> None:
    response = await instance.ask("/v1/states/flights:batchGet", "POST", {"Content-Length": str(len(body))}, body)
    assert (response.status, response.kind) == (400, "bad_request")


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ({"keys": [1] * 999}, "keys.0"),
        ({"keys": ["a"], **{f"x{number}": 1 for number in range(2000)}}, "x0: unknown parameter"),
        ({"keys": ["a"], "x" * 50_000: 1}, "xxx"),
    ],
)
async def test_many_validation_errors_give_a_short_response(
    instance: Instance, body: dict[str, object], first: str
) -> None:
    response = await instance.ask("/v1/states/flights:batchGet", "POST", body=json.dumps(body).encode())
    assert (response.status, response.kind) == (400, "bad_request")
    assert len(response.body) < 1000
    assert response.json["detail"].startswith(first)
    assert ("more. Known: keys, fields" in response.json["detail"]) == (len(body["keys"]) > 1 or len(body) > 3)  # type: ignore[arg-type]


async def test_a_batch_is_bounded(instance: Instance) -> None:
    keys = json.dumps({"keys": ["x"] * 1001}).encode()
    assert (await instance.ask("/v1/states/flights:batchGet", "POST", body=keys)).kind == "too_large"
    large = json.dumps({"keys": ["x" * 2_000_000]}).encode()
    assert (await instance.ask("/v1/states/flights:batchGet", "POST", body=large)).kind == "too_large"


async def test_keys_are_paged(instance: Instance) -> None:
    for number in range(7):
        store(instance).put(f"UA{number}", partition=number % 4)
    store(instance).put("B6")
    response = await instance.ask("/v1/states/flights?prefix=UA&limit=3")
    assert [one["key"] for one in response.json["items"]] == ["UA0", "UA1", "UA2"]
    seen, after = 3, response.json["after"]
    while after is not None:
        response = await instance.ask(f"/v1/states/flights?prefix=UA&limit=3&after={after}")
        seen, after = seen + len(response.json["items"]), response.json["after"]
    assert seen == 7
    assert len((await instance.ask("/v1/states/flights")).json["items"]) == 8


async def test_pages_are_filtered_by_indexed_values(instance: Instance) -> None:
    store(instance).put("UA1", value=b'{"state":{"status":"landed"}}')
    store(instance).put("UA2", value=b'{"state":{"status":"airborne"}}')
    response = await instance.ask("/v1/states/flights?where=state.status:landed&fields=state.x")
    assert [(one["key"], one["value"]) for one in response.json["items"]] == [("UA1", {})]
    for where in ("state.delay:1", "state.status", "state:x", ":x", "state.status:landed&where=state.delay:1"):
        response = await instance.ask(f"/v1/states/flights?where={where}")
        assert (response.status, response.kind) == (400, "bad_request")
        assert "Indexes: state.status" in response.json["detail"]
    response = await instance.ask("/v1/states/flights?where=state.status:landed&where=state.status:airborne")
    assert (response.status, "twice" in response.json["detail"]) == (400, True)
    assert (await instance.ask("/v1/states/flights?limit=1001")).status == 400
    assert (await instance.ask("/v1/states/flights?limit=0")).status == 400


async def test_a_page_fails_if_a_partition_is_unavailable(instance: Instance) -> None:
    routing(instance).others[3] = PartitionStatus(Role.CATCHING_UP, 5)
    assert (await instance.ask("/v1/states/flights")).kind == "catching_up"
    routing(instance).others[3] = PartitionStatus(Role.ELSEWHERE, 5)
    assert (await instance.ask("/v1/states/flights")).kind in ("elsewhere", "unreachable")


async def test_the_states_are_listed(instance: Instance) -> None:
    store(instance).put("UA1")
    routing(instance).others[1] = PartitionStatus(Role.CATCHING_UP, 12)
    response = await instance.ask("/v1/states")
    (state,) = response.json["states"]
    assert (state["name"], state["topic"], state["keys"], state["lag"]) == (
        "flights", "flights-topic", 1, {"records": 12},
    )  # fmt: skip
    assert state["partitions"][1] == {"partition": 1, "role": "catching_up", "lag": {"records": 12}}
    assert (state["lifetime_s"], state["history"], state["indexes"]) == (3600, 3, ["state.status"])
    assert state["schema"] == {"type": "object"}


async def test_an_unknown_state_is_reported_with_the_known_ones(instance: Instance) -> None:
    for path in ("/v1/states/x", "/v1/states/x/y", "/v1/states/x/y/versions"):
        response = await instance.ask(path)
        assert (response.status, response.kind) == (404, "unknown_state")
        assert "flights" in response.json["detail"]


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
async def test_methods_that_write_are_rejected(instance: Instance, method: str) -> None:
    store(instance).put("UA1")
    for path in ("/v1/states", "/v1/states/flights", "/v1/states/flights/UA1", "/v1/states/flights/UA1/versions"):
        response = await instance.ask(path, method)
        assert response.status == (400 if method == "BREW" else 405)
    assert (await instance.ask("/v1/states/flights/UA1")).status == 200


async def test_head_returns_the_headers_of_get(instance: Instance) -> None:
    store(instance).put("UA1")
    for path in ("/v1/states/flights/UA1", "/v1/states/flights/UA2", "/v1/states", "/v1/states/flights"):
        head, get = await instance.ask(path, "HEAD"), await instance.ask(path)
        assert head.status == get.status
        assert head.headers | {"Date": ""} == get.headers | {"Date": ""}


async def test_versions_of_two_epochs_are_kept_apart(instance: Instance) -> None:
    for epoch, version in ((100, 2), (200, 1), (200, 2)):
        store(instance).put("UA1", epoch=epoch, version=version, value=b'{"of":%d}' % epoch)
    path = "/v1/states/flights/UA1"
    response = await instance.ask(path)
    assert (response.json["epoch"], response.json["version"], response.headers["ETag"]) == (200, 2, f'"{NOW}.200.2"')
    assert (await instance.ask(path, headers={"If-None-Match": f'"{NOW}.100.2"'})).status == 200
    kept = (await instance.ask(f"{path}/versions")).json["versions"]
    assert [(one["epoch"], one["version"]) for one in kept] == [(100, 2), (200, 1), (200, 2)]
    for as_of, expected in (("2", {"of": 200}), (f"{NOW}.2", {"of": 200}), (f"{NOW}.100.2", {"of": 100})):
        assert (await instance.ask(f"{path}?as_of={as_of}")).json["value"] == expected
    assert (await instance.ask(f"{path}?as_of={NOW}.100.1")).json["latest"] == f"{NOW}.200.2"
    for least, status in (("2", 200), ("3", 503), (f"{NOW}.100.61", 200), (f"{NOW}.200.3", 503), (f"{NOW}.300.1", 503)):
        assert (await instance.ask(f"{path}?min_version={least}")).status == status
