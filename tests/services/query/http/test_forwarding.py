"""A cluster of two instances, each of which answers for every key."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from contracts.metrics import query as metrics
from contracts.model.named_state import QueryOptions
from contracts.wire.partition import partition
from services.query.cluster import Member, PartitionStatus, Role
from services.query.http.retry import NEAR, PATIENCE_S
from services.query.store import Change
from tests.deadline import DEADLINE_S
from tests.services.query.http.instance import Instance, Peers, answering, request
from tests.services.query.in_memory import MemoryRouting, ScratchStore, a_state, dependencies_of, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from services.query.http.peer_client import ForwardedRequest
    from services.query.http.responses import HttpResponse
    from services.query.store import Page, Scan

PARTITIONS = range(4)
KEYS = [f"UA{number}" for number in range(40)]
FLIGHTS = replace(a_state(query=QueryOptions(indexes=("state.status",))), event_offset="event_offset")


@asynccontextmanager
async def two(peers: Peers | None = None) -> AsyncIterator[tuple[Instance, Instance, Peers]]:
    """Serve two instances: the first owns the even partitions with their keys, the second the odd ones."""
    peers, found = peers or Peers(), []
    for own in (0, 1):
        routing = MemoryRouting()
        routing.others = {one: PartitionStatus(Role.ELSEWHERE, 0) for one in PARTITIONS if one % 2 != own}
        routing.known = [Member("two" if own == 0 else "one", "http://unused")]
        dependencies = dependencies_of(FLIGHTS, routing=routing, instance=("one", "two")[own])
        store = dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        for key in KEYS:
            at = partition(key.encode(), 4)
            if at % 2 == own:
                store.put(key, partition=at, value=json.dumps({"key": key}).encode())
        found.append(dependencies)
    async with (
        answering(found[0], hot=True, peer_client=peers) as one,
        answering(found[1], hot=True, peer_client=peers) as other,
    ):
        peers.instances = {"one": one, "two": other}
        yield one, other, peers


async def test_any_instance_answers_for_any_key() -> None:
    async with two() as (one, other, peers):
        for key in KEYS[:10]:
            first, second = [await one.ask(f"/v1/states/flights/{key}"), await other.ask(f"/v1/states/flights/{key}")]
            assert first.json | {"age_ms": 0} == second.json | {"age_ms": 0}
            assert first.headers["ETag"] == second.headers["ETag"]
            assert first.json["instance"] == ("one", "two")[partition(key.encode(), 4) % 2]
        assert set(peers.forwarded_to) == {"one", "two"}
        assert len(peers.forwarded_to) == 10


def owner_of(key: str) -> str:
    return ("one", "two")[partition(key.encode(), 4) % 2]


class HeldPeers(Peers):
    """Peers that answer when a test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.held = asyncio.Event()

    async def forward(self, members: Sequence[Member], request: ForwardedRequest) -> HttpResponse:
        response = await super().forward(members, request)
        await self.held.wait()
        return response


async def test_a_connection_stays_on_the_fast_path_while_its_requests_are_forwarded() -> None:
    async with two() as (one, _, peers), one.connected() as connection:
        for key in KEYS[:10]:
            connection.send(request(f"/v1/states/flights/{key}"))
            assert (await connection.response()).json["instance"] == owner_of(key)
        connection.send(request("/v1/states/flights:batchGet", "POST", body=json.dumps({"keys": KEYS}).encode()))
        answers = (await connection.response()).json["answers"]
        assert [answer["instance"] for answer in answers] == [owner_of(key) for key in KEYS]
        waited = one.dependencies.counts.histograms(metrics.REQUEST_SECONDS)[()].count
        assert waited == len(peers.forwarded_to) > 1, "those that are answered at once are not measured"


async def test_requests_after_a_forwarded_one_are_answered_after_it() -> None:
    peers, keys = HeldPeers(), [next(key for key in KEYS if owner_of(key) == owner) for owner in ("two", "one")]
    async with two(peers) as (one, _, _), one.connected() as connection:
        connection.send(request(f"/v1/states/flights/{keys[0]}"))
        await until(lambda: bool(peers.forwarded_to))
        connection.send(request(f"/v1/states/flights/{keys[1]}"))
        assert (await one.ask(f"/v1/states/flights/{keys[1]}")).status == 200, "other connections do not wait"
        peers.held.set()
        assert [(await connection.response()).json["key"] for _ in keys] == keys


async def test_a_client_may_leave_while_its_request_is_forwarded() -> None:
    peers = HeldPeers()
    (key, *_) = [key for key in KEYS if owner_of(key) == "two"]
    async with two(peers) as (one, _, _):
        async with one.connected() as connection:
            connection.send(request(f"/v1/states/flights/{key}"))
            await until(lambda: bool(peers.forwarded_to))
        peers.held.set()
        assert (await one.ask(f"/v1/states/flights/{key}")).status == 200


async def until_stopping(instance: Instance) -> None:
    """Wait until the instance accepts no connection."""
    with suppress(OSError):
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", instance.port)
            writer.close()
            await writer.wait_closed()


async def test_a_server_that_stops_still_answers_what_it_has_forwarded() -> None:
    peers, stopped = HeldPeers(), asyncio.Event()
    (key, *_) = [key for key in KEYS if owner_of(key) == "two"]
    routing = MemoryRouting()
    routing.own = PartitionStatus(Role.ELSEWHERE, 0)
    routing.known = [Member("two", "http://unused")]
    dependencies = dependencies_of(FLIGHTS, routing=routing, stop_within=60)

    async def serve(started: asyncio.Future[Instance]) -> None:
        async with answering(dependencies, hot=True, peer_client=peers) as instance:
            started.set_result(instance)
            await stopped.wait()

    async with two() as (_, other, _):
        peers.instances, started = {"two": other}, asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(started))
        async with (await started).connected() as connection:
            connection.send(request(f"/v1/states/flights/{key}"))
            await until(lambda: bool(peers.forwarded_to))
            stopped.set()
            await until_stopping(await started)
            connection.send(request(f"/v1/states/flights/{key}"))
            peers.held.set()
            assert (await connection.response()).json["key"] == key
            with suppress(ConnectionResetError):  # the service has not read the other request
                assert await connection.rest() == b""
        await serving


async def test_conditions_and_fields_are_forwarded() -> None:
    async with two() as (one, _, _):
        (key, *_) = [key for key in KEYS if partition(key.encode(), 4) % 2]
        response = await one.ask(f"/v1/states/flights/{key}?fields=none")
        assert response.json["value"] == {}
        tag = response.headers["ETag"]
        assert (await one.ask(f"/v1/states/flights/{key}", headers={"If-None-Match": tag})).status == 304
        assert (await one.ask(f"/v1/states/flights/{key}?as_of=9")).kind == "version_not_kept"
        assert len((await one.ask(f"/v1/states/flights/{key}/versions")).json["versions"]) == 1
        assert (await one.ask(f"/v1/states/flights/{key}", "HEAD")).status == 200


async def test_a_batch_is_merged_in_the_order_of_its_keys() -> None:
    async with two() as (one, other, peers):
        for instance in (one, other):
            body = json.dumps({"keys": [*KEYS, "none"]}).encode()
            response = await instance.ask("/v1/states/flights:batchGet", "POST", body=body)
            assert [answer["key"] for answer in response.json["answers"]] == [*KEYS, "none"]
            assert [answer["value"]["key"] for answer in response.json["answers"][:-1]] == KEYS
            assert response.json["answers"][-1]["type"] == "never_seen"
        assert len(peers.forwarded_to) == 2, "the other instance gets one request for all of its keys"


@pytest.mark.parametrize("limit", [1, 7, 40, 100])
async def test_pages_of_both_have_every_key_once_and_in_order(limit: int) -> None:
    async with two() as (one, _, _):
        seen, after = [], ""
        while after is not None:
            response = await one.ask(f"/v1/states/flights?limit={limit}" + (f"&after={after}" if after else ""))
            seen += [item["key"] for item in response.json["items"]]
            after = response.json["after"]
        assert seen == sorted(KEYS)


async def test_unknown_owners_get_no_request() -> None:
    async with two() as (one, _, peers):
        routing = one.dependencies.routing
        assert isinstance(routing, MemoryRouting)
        routing.known = []
        (key, *_) = [key for key in KEYS if partition(key.encode(), 4) % 2]
        response = await one.ask(f"/v1/states/flights/{key}")
        assert (response.status, response.kind, response.headers["Retry-After"]) == (503, "unreachable", "1")
        assert (await one.ask("/v1/states/flights")).kind == "unreachable"
        assert not peers.forwarded_to


async def test_a_forwarded_request_is_not_forwarded_again() -> None:
    async with two() as (one, _, peers):
        (key, *_) = [key for key in KEYS if partition(key.encode(), 4) % 2]
        response = await one.ask(f"/v1/states/flights/{key}", headers={"Stateloop-Hop": "1"})
        assert (response.status, response.kind) == (421, "elsewhere")
        assert (await one.ask("/v1/states/flights", headers={"Stateloop-Hop": "1"})).status == 421
        assert not peers.forwarded_to


async def test_a_page_is_not_completed_by_an_instance_that_uses_other_partitions() -> None:
    """Keys of the partitions that only one of them uses would be missing."""
    async with two() as (one, _, peers):
        assert (await one.ask("/v1/states/flights")).status == 200
        (((name, value),),) = peers.headers
        topic = FLIGHTS.topic
        assert (name, value) == ("Stateloop-Layout", f"{topic}=4")
        hop = {"Stateloop-Hop": "1"}
        for text, status in ((f"{topic}=4", 200), (f"{topic}=5", 421), ("other=5", 200), ("", 200)):
            response = await one.ask("/v1/states/flights?partitions=0,2", headers=hop | {name: text})
            assert response.status == status, text


async def test_a_key_without_known_owner_does_not_fail_the_batch() -> None:
    routing = MemoryRouting()
    routing.others = {one: PartitionStatus(Role.ELSEWHERE, 0) for one in PARTITIONS if one % 2}
    routing.known = []
    dependencies = dependencies_of(FLIGHTS, routing=routing)
    here, away = (next(key for key in KEYS if partition(key.encode(), 4) % 2 == own) for own in (0, 1))
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put(here, partition=partition(here.encode(), 4), value=json.dumps({"key": here}).encode())
    async with answering(dependencies, hot=True, peer_client=Peers()) as one:
        body = json.dumps({"keys": [here, away]}).encode()
        response = await one.ask("/v1/states/flights:batchGet", "POST", body=body)
        assert response.status == 200
        first, second = response.json["answers"]
        assert first["value"] == {"key": here}
        assert second["type"] == "unreachable"


async def test_a_client_is_not_told_that_a_key_of_its_batch_is_elsewhere() -> None:
    """While a partition moves, each instance may take the other one for the owner."""
    async with two() as (one, other, peers):
        routing = other.dependencies.routing
        assert isinstance(routing, MemoryRouting)
        routing.own = PartitionStatus(Role.ELSEWHERE, 0)
        (key, *_) = [key for key in KEYS if partition(key.encode(), 4) % 2]
        body = json.dumps({"keys": [key]}).encode()
        (answer,) = (await one.ask("/v1/states/flights:batchGet", "POST", body=body)).json["answers"]
        assert (answer["type"], answer["status"], answer["key"]) == ("unreachable", 503, key)
        assert len(peers.forwarded_to) > 1, "it asks again"


class Moving(Peers):
    """During a forwarded request, the local partitions move to other instances."""

    def __init__(self, here: Instance | None = None) -> None:
        super().__init__()
        self.here = here

    async def forward(self, members: Sequence[Member], request: ForwardedRequest) -> HttpResponse:
        reply = await super().forward(members, request)
        assert self.here is not None
        routing, store = self.here.dependencies.routing, self.here.dependencies.stores["flights"]
        assert isinstance(routing, MemoryRouting)
        assert isinstance(store, ScratchStore)
        routing.own = PartitionStatus(Role.ELSEWHERE, 0)
        store.clear()
        return reply


async def test_the_local_part_of_a_page_is_read_before_the_others_answer() -> None:
    """The local part of a page is read before the others answer: afterwards this instance may not own it."""
    peers = Moving()
    async with two(peers) as (one, _, _):
        peers.here = one
        store = one.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        whole = await one.ask("/v1/states/flights")
        assert [item["key"] for item in whole.json["items"]] == sorted(KEYS)


async def test_a_page_is_not_returned_if_a_partition_moved_while_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as (one, _, _):
        routing, store = one.dependencies.routing, one.dependencies.stores["flights"]
        assert isinstance(routing, MemoryRouting)
        read = store.scan

        def read_while_moving(scan: Scan) -> Page:
            routing.own = PartitionStatus(Role.CATCHING_UP, NEAR)
            return read(scan)

        monkeypatch.setattr(store, "scan", read_while_moving)
        response = await one.ask("/v1/states/flights")
        assert (response.status, response.kind, response.headers["Retry-After"]) == (503, "catching_up", "1")


async def test_a_waiting_request_follows_its_key_to_the_new_owner() -> None:
    async with two() as (one, other, peers):
        key = next(key for key in KEYS if partition(key.encode(), 4) == 0)
        waiting = asyncio.create_task(one.ask(f"/v1/states/flights/{key}?min_version=2&wait=20"))
        await until(lambda: one.waits.waiting == 1)
        for instance, role in ((one, Role.ELSEWHERE), (other, Role.OWNER)):
            assert isinstance(instance.dependencies.routing, MemoryRouting)
            instance.dependencies.routing.others[0] = PartitionStatus(role, 0)
        await until(lambda: other.waits.waiting == 1)
        (target,) = peers.targets
        assert 10 < float(parse_qs(target.partition("?")[2])["wait"][0]) < 20, "what is left of its time"
        store = other.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        other.waits.changed([Change("flights", key, store.put(key, version=2, value=b"{}"))])
        response = await waiting
        assert (response.status, response.json["version"], response.json["instance"]) == (200, 2, "two")
        assert one.waits.waiting == 0


async def test_a_wait_at_a_frozen_owner_ends_when_its_partition_moves() -> None:
    async with two() as (one, other, _):
        key = next(key for key in KEYS if partition(key.encode(), 4) == 1)
        waiting = asyncio.create_task(one.ask(f"/v1/states/flights/{key}?min_version=2&wait=30"))
        await until(lambda: other.waits.waiting == 1)
        store = one.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        store.put(key, version=2, partition=1, value=b"{}")
        assert isinstance(one.dependencies.routing, MemoryRouting)
        one.dependencies.routing.others[1] = PartitionStatus(Role.OWNER, 0)
        response = await asyncio.wait_for(waiting, DEADLINE_S)
        assert (response.status, response.json["version"], response.json["instance"]) == (200, 2, "one")


async def test_a_wait_follows_its_partition_each_time_that_it_moves() -> None:
    async with two() as (one, other, _):
        key = next(key for key in KEYS if partition(key.encode(), 4) == 0)
        routings = one.dependencies.routing, other.dependencies.routing
        assert all(isinstance(routing, MemoryRouting) for routing in routings)
        waiting = asyncio.create_task(one.ask(f"/v1/states/flights/{key}?min_version=2&wait=30"))
        await until(lambda: one.waits.waiting == 1)
        for routing, role in zip(routings, (Role.ELSEWHERE, Role.OWNER), strict=True):
            routing.others[0] = PartitionStatus(role, 0)  # type: ignore[attr-defined]
        await until(lambda: other.waits.waiting == 1)
        store = one.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        store.put(key, version=2, partition=0, value=b"{}")
        await asyncio.sleep(2 * PATIENCE_S)  # longer than a request is retried
        routings[0].others[0] = PartitionStatus(Role.OWNER, 0)  # type: ignore[attr-defined]  # the other one is frozen
        response = await asyncio.wait_for(waiting, DEADLINE_S)
        assert (response.status, response.json["version"], response.json["instance"]) == (200, 2, "one")


async def test_a_wait_for_an_event_is_forwarded_to_the_owner_of_its_key() -> None:
    async with two() as (one, other, _):
        key = next(key for key in KEYS if partition(key.encode(), 4) == 3)
        path = f"/v1/states/flights/{key}?min_offset=3:1047"
        behind = await one.ask(path)
        assert (behind.status, behind.kind, behind.json["latest_offset"]) == (503, "behind", None)
        assert behind.json["instance"] == "two"
        waiting = asyncio.create_task(one.ask(f"{path}&wait=20"))
        await until(lambda: other.waits.waiting == 1)
        store = other.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        entry = store.put(key, version=2, partition=3, value=b'{"event_offset":1047}')
        other.waits.changed([Change("flights", key, entry)])
        response = await waiting
        assert (response.status, response.json["version"], response.json["instance"]) == (200, 2, "two")


async def test_a_wait_for_a_partition_without_owner_fails_at_once() -> None:
    async with two() as (one, _, _):
        key = next(key for key in KEYS if partition(key.encode(), 4) == 0)
        waiting = asyncio.create_task(one.ask(f"/v1/states/flights/{key}?min_version=2&wait=30"))
        await until(lambda: one.waits.waiting == 1)
        assert isinstance(one.dependencies.routing, MemoryRouting)
        one.dependencies.routing.others[0] = PartitionStatus(Role.CATCHING_UP, NEAR)
        response = await asyncio.wait_for(waiting, 20)
        assert (response.status, response.kind, response.headers["Retry-After"]) == (503, "catching_up", "1")


async def test_a_key_that_may_be_misplaced_is_not_reported_as_never_seen() -> None:
    routing = MemoryRouting()
    dependencies = replace(dependencies_of(FLIGHTS, routing=routing), misplaced={"flights": 3})
    async with answering(dependencies, hot=True, peer_client=Peers()) as one:
        assert (await one.ask("/v1/states")).json["states"][0]["misplaced"] == 3
        response = await one.ask(f"/v1/states/flights/{KEYS[0]}")
        assert (response.status, response.kind) == (404, "never_seen"), "all partitions are here: it would be found"
        other_partition = (partition(KEYS[0].encode(), 4) + 1) % 4
        routing.others = {other_partition: PartitionStatus(Role.ELSEWHERE, 0)}
        response = await one.ask(f"/v1/states/flights/{KEYS[0]}")
        assert (response.status, response.kind, response.json["key"]) == (500, "misplaced", KEYS[0])
        assert "murmur2_random" in response.json["detail"]
        body = json.dumps({"keys": [KEYS[0]]}).encode()
        (answer,) = (await one.ask("/v1/states/flights:batchGet", "POST", body=body)).json["answers"]
        assert answer["type"] == "misplaced"
