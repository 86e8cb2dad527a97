"""A token reveals nothing beyond its scope: no store is read for it, and no response names or counts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession
from typing_extensions import override

from contracts import Suite
from contracts.model.named_state import QueryOptions
from contracts.wire.announcement import AnnouncedPart, AnnouncedState, Announcement
from examples.departures.application import departures
from examples.flights.application import app
from services.query.cluster import Member, PartitionStatus, Role
from services.query.console.loops import Loops
from services.query.console.routes import Console
from services.query.http.instance_routes import instance_facts, owners_of
from services.query.http.watch_routes import WatchRoutes
from services.query.lookup.authentication import ANONYMOUS, Principal
from services.query.lookup.problems import ProblemError
from tests.deadline import DEADLINE_S
from tests.services.query.console.observations import at_work
from tests.services.query.http.instance import Instance, Peers
from tests.services.query.in_memory import MemoryRouting, ScratchStore, a_state, dependencies_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from services.query.store import Entry, Page, Scan
    from tests.services.query.http.instance import Response

SECRET = "a-secret-of-a-dashboard"  # noqa: S105  # opens nothing
BEARER = {"Authorization": f"Bearer {SECRET}"}
ALL = {"Authorization": "Bearer a-secret-of-an-operator"}
OWN, FOREIGN, ABSENT = "UA/1", "AA/1", "AA/2"
ROLES = {"owner": Role.OWNER, "catching up": Role.CATCHING_UP, "elsewhere": Role.ELSEWHERE}


class CountingStore(ScratchStore):
    """A store that records each read; the number of keys counts as one."""

    def __init__(self) -> None:
        super().__init__(a_state(query=QueryOptions(indexes=("a.b",), history=2)))
        self.read: list[str] = []

    @override
    def get(self, key: str, time: int | None = None) -> Entry | None:
        self.read.append(key)
        return super().get_many([key], time)[0]

    @override
    def get_many(self, keys: Sequence[str], time: int | None = None) -> list[Entry | None]:
        self.read += [f"gets of {len(keys)}", *keys]
        return super().get_many(keys, time)

    @override
    def versions(self, key: str, time: int | None = None) -> list[Entry]:
        self.read.append(key)
        return super().versions(key, time)

    @override
    def scan(self, scan: Scan) -> Page:
        self.read.append(f"page of {scan.prefix}")
        return super().scan(scan)

    @override
    def key_count(self) -> int:
        self.read.append("number of keys")
        return super().key_count()


class Scoped:
    """Two instances, the first with a token for the keys of flights that begin with UA/."""

    def __init__(self, tokens: Path, *, hot: bool) -> None:
        self.routing, self.peers = MemoryRouting(), Peers()
        self.routing.known = [Member("two", "http://two:1")]
        self.stores = {name: CountingStore() for name in ("one", "two")}
        self.one = self._instance("one", self.routing, hot=hot, peer_client=self.peers, tokens=tokens)
        self.peers.instances["two"] = self.two = self._instance("two", MemoryRouting(), hot=hot)

    def _instance(self, name: str, routing: MemoryRouting, *, hot: bool, **overrides: Any) -> Instance:
        state = a_state(query=QueryOptions(indexes=("a.b",), history=2))
        peer_client = overrides.pop("peer_client", None)
        stores = {"flights": self.stores[name], "planes": CountingStore()}
        for key in (OWN, FOREIGN):
            stores["flights"].put(key)
            stores["planes"].put(key)
        stores["flights"].read.clear()
        dependencies = dependencies_of(
            state, a_state("planes"), stores=stores, routing=routing, instance=name, **overrides
        )
        loops = Loops(Suite(app, departures), 2.0)
        for at in (0, 2):
            loops.record(at_work(at, rate=1))
        return Instance(
            dependencies,
            hot=hot,
            peer_client=peer_client,
            others=[WatchRoutes(dependencies), Console(loops)],
        )

    @property
    def reads(self) -> list[str]:
        """Return the reads of the stores of both instances."""
        return [key for store in self.stores.values() for key in store.read]


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.json"
    scoped = {"name": "dashboard", "token": SECRET, "states": ["flights", "gone"], "keys": ["UA/"]}
    path.write_text(json.dumps({"tokens": [scoped, {"name": "operator", "token": "a-secret-of-an-operator"}]}))
    return path


@asynccontextmanager
async def scoped(tokens: Path, *, hot: bool = True) -> AsyncIterator[Scoped]:
    found = Scoped(tokens, hot=hot)
    async with found.one.server.serving() as found.one.port, found.two.server.serving() as found.two.port:
        yield found


RequestOfKey = Callable[[str], tuple[str, dict[str, Any]]]


def batch(key: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/states/flights:batchGet", {"method": "POST", "body": json.dumps({"keys": [key] * 3} | more).encode()}


REQUESTS: dict[str, RequestOfKey] = {
    "get": lambda key: (f"/v1/states/flights/{quoted(key)}", {}),
    "head": lambda key: (f"/v1/states/flights/{quoted(key)}", {"method": "HEAD"}),
    "fields": lambda key: (f"/v1/states/flights/{quoted(key)}?fields=a", {}),
    "an earlier version": lambda key: (f"/v1/states/flights/{quoted(key)}?as_of=1", {}),
    "wait": lambda key: (f"/v1/states/flights/{quoted(key)}?min_version=9&wait=5", {}),
    "nothing new": lambda key: (f"/v1/states/flights/{quoted(key)}", {"headers": {"If-None-Match": "*"}}),
    "versions": lambda key: (f"/v1/states/flights/{quoted(key)}/versions", {}),
    "events": lambda key: (f"/v1/states/flights/{quoted(key)}/watch", {}),
    "events after": lambda key: (f"/v1/states/flights/{quoted(key)}/watch", {"headers": {"Last-Event-ID": "0"}}),
    "page": lambda key: (f"/v1/states/flights?prefix={quoted(key)}", {}),
    "page by a value": lambda key: (f"/v1/states/flights?prefix={quoted(key[:1])}&where=a.b:1", {}),
    "page after": lambda key: (f"/v1/states/flights?after={quoted(key)}", {}),
    "batch": batch,
    "batch of fields": lambda key: batch(key, fields="a"),
}


def quoted(key: str) -> str:
    return key.replace("/", "%2F")


@pytest.mark.parametrize("forwarded", [False, True], ids=["direct", "forwarded"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("hot", [True, False], ids=["hot", "aiohttp"])
async def test_a_foreign_key_costs_no_read_in_any_role(
    tokens: Path,
    hot: bool,  # noqa: FBT001  # a parameter
    role: str,
    forwarded: bool,  # noqa: FBT001  # a parameter
) -> None:
    async with scoped(tokens, hot=hot) as found:
        found.routing.own = PartitionStatus(ROLES[role], 2)
        for name, request_of in REQUESTS.items():
            there = await ask(found.one, request_of(FOREIGN), forwarded=forwarded)
            absent = await ask(found.one, request_of(ABSENT), forwarded=forwarded)
            assert (found.reads, found.peers.forwarded_to) == ([], []), name
            assert there.raw == absent.raw.replace(ABSENT.encode(), FOREIGN.encode()), f"{name}: the answers differ"
            assert there.status == 403 or there.body.count(b'"type":"not_yours"') == 3, name


async def test_the_counting_store_records_reads(tokens: Path) -> None:
    """The test above relies on this: the same requests for a key in the scope read the store."""
    async with scoped(tokens) as found:
        for name in ("get", "versions", "page", "batch", "batch of fields"):
            assert (await ask(found.one, REQUESTS[name](OWN))).status == 200
            assert found.stores["one"].read, name
            found.stores["one"].read.clear()


async def test_a_batch_reads_only_keys_in_the_scope(tokens: Path) -> None:
    for role, count in ((Role.OWNER, 1), (Role.ELSEWHERE, 2)):
        async with scoped(tokens) as found:
            found.routing.own = PartitionStatus(role, 0)
            body = json.dumps({"keys": [FOREIGN, OWN, ABSENT]}).encode()
            response = await found.one.ask("/v1/states/flights:batchGet", "POST", BEARER, body)
            kinds = [one.get("key") if "version" in one else one["type"] for one in response.json["answers"]]
            assert kinds == ["not_yours", OWN, "not_yours"]
            assert set(found.reads) == {"gets of 1", OWN}, "the foreign keys are not read"
            assert len({name for name, store in found.stores.items() if store.read}) == count


@pytest.mark.parametrize("relayed", [False, True])
async def test_no_subscription_reads_a_foreign_key(tokens: Path, relayed: bool) -> None:  # noqa: FBT001
    headers = BEARER | ({"Stateloop-Hop": "1"} if relayed else {})
    async with (
        scoped(tokens) as found,
        ClientSession(f"http://127.0.0.1:{found.one.port}") as session,
        session.ws_connect("/v1/watch", headers=headers) as socket,
    ):
        for state, options in (
            ("flights", {"key": FOREIGN}),
            ("flights", {"prefix": "U"}),
            ("flights", {"where": {"a.b": "1"}}),
            ("planes", {"key": OWN}),
            ("nowhere", {"key": OWN}),
        ):
            await socket.send_json({"type": "subscribe", "id": "a", "state": state, **options})
            async with asyncio.timeout(DEADLINE_S):
                message = await socket.receive_json()
            assert message["problem"]["type"] == "not_yours", options
        assert found.reads == []


async def test_a_state_beyond_the_scope_looks_like_an_unknown_one(tokens: Path) -> None:
    async with scoped(tokens) as found:
        for path in ("{}", "{}?prefix=UA/", "{}/UA%2F1", "{}/UA%2F1/versions", "{}/UA%2F1/watch"):
            there, absent = [
                await found.one.ask(f"/v1/states/{path.format(name)}", headers=BEARER) for name in ("planes", "nosuch")
            ]
            assert (there.status, there.raw.replace(b"planes", b"nosuch")) == (403, absent.raw), path
        there, absent = [
            await found.one.ask(f"/v1/states/{name}:batchGet", "POST", BEARER, b'{"keys":["UA/1"]}')
            for name in ("planes", "nosuch")
        ]
        assert (there.status, there.raw.replace(b"planes", b"nosuch")) == (403, absent.raw)


@pytest.mark.parametrize("forwarded", [False, True], ids=["direct", "forwarded"])
async def test_the_partitions_of_a_state_beyond_the_scope_are_not_revealed(tokens: Path, *, forwarded: bool) -> None:
    watch = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "A" * 22 + "==",
    }
    async with scoped(tokens) as found:
        for path, more, status in (("/v1/states/flights?prefix=UA/", {}, 200), ("/v1/watch", watch, 101)):
            for topic in ("planes-topic", "absent-topic"):
                request = path, {"headers": more | {"Stateloop-Layout": f"{topic}=9"}}
                assert (await ask(found.one, request, forwarded=forwarded)).status == status


async def test_an_unknown_state_lists_only_states_in_the_scope(tokens: Path) -> None:
    async with scoped(tokens) as found:
        response = await found.one.ask("/v1/states/gone/UA%2F1", headers=BEARER)
        assert (response.status, response.kind) == (404, "unknown_state")
        assert "flights" in response.json["detail"]
        assert b"planes" not in response.body
        response = await found.one.ask("/v1/states/gone/UA%2F1", headers=ALL)
        assert "flights, planes" in response.json["detail"]


async def test_states_have_no_key_count_for_a_token_with_a_prefix(tokens: Path) -> None:
    async with scoped(tokens) as found:
        response = await found.one.ask("/v1/states", headers=BEARER)
        (state,) = response.json["states"]
        assert (state["name"], state["keys"], state["misplaced"]) == ("flights", None, None)
        assert found.reads == []
        response = await found.one.ask("/v1/states", headers=ALL)
        assert [(one["keys"], one["misplaced"]) for one in response.json["states"]] == [(2, 0), (2, 0)]


@pytest.mark.parametrize("path", ["/metrics", "/v1/loop", "/v1/loop/dead_letters"])
async def test_totals_over_all_keys_require_a_token_for_all_keys(tokens: Path, path: str) -> None:
    async with scoped(tokens) as found:
        assert (await found.one.ask(path)).status == 401
        response = await found.one.ask(path, headers=BEARER)
        assert (response.status, response.kind) == (403, "not_yours")
        assert (await found.one.ask(path, headers=ALL)).status == 200


async def test_a_token_for_some_keys_gets_the_graph_without_counts(tokens: Path) -> None:
    async with scoped(tokens) as found:
        for headers, nodes in ((BEARER, [{}]), (ALL, [{"result": 4}])):
            response = await found.one.ask("/v1/loop/graph", headers=headers)
            assert [one["totals"] for one in response.json["nodes"] if one["name"] == "aircraft"] == nodes


@pytest.mark.parametrize("path", ["/v1/loop", "/v1/loop/graph", "/v1/loop/dead_letters"])
async def test_an_application_beyond_the_scope_looks_like_an_unknown_one(tokens: Path, path: str) -> None:
    async with scoped(tokens) as found:
        there, absent = [
            await found.one.ask(f"{path}?application={name}", headers=BEARER) for name in ("departures", "nosuchname")
        ]
        assert (there.status, there.raw.replace(b"departures", b"nosuchname")) == (403, absent.raw)
        response = await found.one.ask(f"{path}?application=nosuch", headers=ALL)
        assert (response.status, response.kind) == (404, "unknown_application")
        assert response.json["detail"] == "The applications are: flights, departures"


async def test_an_unknown_application_lists_only_applications_in_the_scope(tokens: Path) -> None:
    async with scoped(tokens) as found:
        response = await found.one.ask("/v1/loop/graph?application=gone", headers=BEARER)
        assert (response.kind, response.json["detail"]) == ("unknown_application", "The applications are: flights")
        assert b"departures" not in response.body


def test_the_first_application_in_the_scope_is_the_default() -> None:
    loops = Loops(Suite(app, departures), 2.0)
    assert loops.get(None, Principal("some", ("departures",))).application is departures
    with pytest.raises(ProblemError) as refused:
        loops.get(None, Principal("some", ("planes",)))
    assert refused.value.problem.kind == "not_yours"
    assert "flights" not in refused.value.problem.detail


def test_instances_are_listed_without_states_and_positions_beyond_the_scope() -> None:
    part = AnnouncedPart(partition=0, assigned=True, held=True, position=4711)
    states = {name: AnnouncedState(watermark=1, parts=(part,)) for name in ("flights", "planes")}
    announced = Announcement(
        instance="one", store="s", url="http://one:1", run=1, number=1, ts=datetime.now(UTC), states=states
    )
    for principal, owns, position in (
        (Principal("some", ("flights",), ("UA/",)), {"flights": [0]}, None),
        (Principal("flights", ("flights",)), {"flights": [0]}, 4711),
        (ANONYMOUS, {"flights": [0], "planes": [0]}, 4711),
    ):
        facts = instance_facts(announced, owners_of([announced]), principal)
        assert facts["owns"] == owns
        assert facts["states"].keys() == owns.keys()
        assert facts["states"]["flights"]["partitions"][0]["position"] == position


async def ask(instance: Instance, request: tuple[str, dict[str, Any]], *, forwarded: bool = False) -> Response:
    path, options = request
    headers = BEARER | options.get("headers", {}) | ({"Stateloop-Hop": "1"} if forwarded else {})
    return await instance.ask(path, options.get("method", "GET"), headers, options.get("body", b""))
