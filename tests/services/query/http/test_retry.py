"""Requests during the move of a partition from one instance to another are retried."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contracts.api.admin import PUT_ROW
from services.query.cluster import Member, PartitionStatus, Role
from services.query.http.responses import HttpResponse
from services.query.http.retry import NEAR, PATIENCE_S, RetryBudget
from services.query.http.routes import route
from services.query.lookup.problems import Problem, ProblemError
from tests.services.query.http.instance import Instance, answering, request
from tests.services.query.in_memory import MemoryRouting, ScratchStore, a_state, dependencies_of, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp import web

    from services.query.http.requests import HttpRequest
    from tests.services.query.http.instance import Response

KEY = "UA1"
NEARLY = PartitionStatus(Role.CATCHING_UP, NEAR - 1)


class UnusedPeerClient:
    """A PeerClient that fails the test when it is used."""

    async def forward(self, *_: object) -> None:
        raise AssertionError


class ShiftedClock:
    """A clock that a test moves forward."""

    def __init__(self) -> None:
        self.by = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.by


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture(params=[True, False], ids=["hot", "aiohttp"])
async def instance(request: pytest.FixtureRequest, clock: ShiftedClock) -> AsyncIterator[Instance]:
    dependencies = replace(dependencies_of(a_state()), clock=clock)
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put(KEY)
    async with answering(dependencies, hot=request.param, peer_client=UnusedPeerClient()) as found:  # type: ignore[arg-type]
        yield found


def set_status(instance: Instance, partition_status: PartitionStatus) -> None:
    routing = instance.dependencies.routing
    assert isinstance(routing, MemoryRouting)
    routing.own = partition_status


async def ask(instance: Instance, what: str, headers: dict[str, str] | None = None) -> Response:
    if what == "batch":
        body = json.dumps({"keys": [KEY, KEY]}).encode()
        return await instance.ask("/v1/states/flights:batchGet", "POST", headers, body)
    path = {
        "key": f"/v1/states/flights/{KEY}",
        "page": "/v1/states/flights",
        "versions": f"/v1/states/flights/{KEY}/versions",
    }
    return await instance.ask(path[what], headers=headers)


@pytest.mark.parametrize("what", ["key", "versions", "page", "batch"])
async def test_a_request_waits_for_an_instance_that_catches_up_soon(instance: Instance, what: str) -> None:
    set_status(instance, NEARLY)
    pending = asyncio.ensure_future(ask(instance, what))
    done, _ = await asyncio.wait([pending], timeout=PATIENCE_S / 4)
    assert not done
    set_status(instance, PartitionStatus(Role.OWNER, 0))
    response = await pending
    assert response.status == 200
    assert b'"version":1' in response.body
    assert b'"type"' not in response.body


@pytest.mark.parametrize("what", ["key", "batch"])
async def test_a_persistent_problem_is_returned(instance: Instance, clock: ShiftedClock, what: str) -> None:
    set_status(instance, NEARLY)
    pending = asyncio.ensure_future(ask(instance, what))
    done, _ = await asyncio.wait([pending], timeout=PATIENCE_S / 4)
    assert not done, "it is retried"
    clock.by = PATIENCE_S
    assert b'"catching_up"' in (await pending).body


@pytest.mark.parametrize("what", ["key", "versions"])
async def test_an_instance_far_behind_responds_at_once(instance: Instance, what: str) -> None:
    set_status(instance, PartitionStatus(Role.CATCHING_UP, NEAR))
    began = time.monotonic()
    assert (await ask(instance, what)).kind == "catching_up"
    assert time.monotonic() - began < PATIENCE_S / 2


async def test_a_forwarded_request_is_not_retried(instance: Instance) -> None:
    set_status(instance, NEARLY)
    began = time.monotonic()
    assert (await ask(instance, "key", {"Stateloop-Hop": "1"})).kind == "catching_up"
    assert time.monotonic() - began < PATIENCE_S / 2


async def test_a_wait_does_not_use_up_the_retry_budget() -> None:
    clock, dependencies = ShiftedClock(), dependencies_of(a_state())
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put(KEY)
    async with answering(replace(dependencies, clock=clock), hot=True, peer_client=UnusedPeerClient()) as instance:  # type: ignore[arg-type]
        pending = asyncio.ensure_future(instance.ask(f"/v1/states/flights/{KEY}?min_version=2&wait=20"))
        await until(lambda: instance.waits.waiting == 1)
        clock.by = 2 * PATIENCE_S
        set_status(instance, NEARLY)
        await until(lambda: instance.waits.waiting == 0)
        store.put(KEY, version=2)
        set_status(instance, PartitionStatus(Role.OWNER, 0))
        response = await pending
    assert (response.status, response.json["version"]) == (200, 2)


class Slow:
    """A PeerClient whose first requests take some time and fail."""

    def __init__(self, clock: ShiftedClock, takes_s: float, failures: int, answer: bytes = b"{}") -> None:
        self.clock = clock
        self.answer = answer
        self.takes_s = takes_s
        self.failures = failures
        self.requests = 0

    async def forward(self, *_: object) -> HttpResponse:
        self.requests += 1
        if self.requests <= self.failures:
            self.clock.by += self.takes_s
            raise ProblemError(Problem("unreachable", "no instance responds"))
        return HttpResponse(200, "", self.answer)


@pytest.mark.parametrize(
    ("takes_s", "failures", "requests", "status"),
    [
        (10, 1, 2, 200),  # it waited there until the partition moved
        (10, 9, 2, 503),  # the last retry fails before the wait is over
        (21, 9, 1, 503),  # the wait is over
    ],
)
async def test_a_wait_at_another_instance_is_retried_within_limits(
    takes_s: float, failures: int, requests: int, status: int
) -> None:
    clock, dependencies = ShiftedClock(), dependencies_of(a_state())
    peer_client = Slow(clock, takes_s, failures)
    async with answering(replace(dependencies, clock=clock), hot=False, peer_client=peer_client) as instance:
        routing = instance.dependencies.routing
        assert isinstance(routing, MemoryRouting)
        routing.own, routing.known = PartitionStatus(Role.ELSEWHERE, 0), [Member("two", "http://127.0.0.1:1")]
        response = await instance.ask(f"/v1/states/flights/{KEY}?min_version=2&wait=20")
    assert (response.status, peer_client.requests) == (status, requests)


@pytest.mark.parametrize("hot", [True, False])
async def test_an_instance_that_does_not_answer_does_not_use_up_the_patience_of_a_batch(*, hot: bool) -> None:
    clock, dependencies = ShiftedClock(), dependencies_of(a_state())
    peer_client = Slow(clock, 2 * PATIENCE_S, 1, b'{"version":1}\x1e{"version":1}')
    async with answering(replace(dependencies, clock=clock), hot=hot, peer_client=peer_client) as instance:
        routing = instance.dependencies.routing
        assert isinstance(routing, MemoryRouting)
        routing.own, routing.known = PartitionStatus(Role.ELSEWHERE, 0), [Member("two", "http://127.0.0.1:1")]
        response = await ask(instance, "batch")
    assert (response.json["answers"], peer_client.requests) == ([{"version": 1}] * 2, 2)


class MovingRows:
    """Writes of rows, of which the first finds its partition on the move."""

    def __init__(self) -> None:
        self.attempts = 0

    def routes(self) -> list[web.RouteDef]:
        return [route(PUT_ROW, self.put)]

    async def put(self, _: HttpRequest) -> HttpResponse:
        self.attempts += 1
        if self.attempts == 1:
            raise ProblemError(Problem("unreachable", "no instance responds"))
        return HttpResponse(200, "", b"{}")


async def test_an_upload_does_not_use_up_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rows, budgets = ShiftedClock(), MovingRows(), list[RetryBudget]()

    class NotedBudget(RetryBudget):
        def __init__(self, clock: Callable[[], float], *, is_forwarded: bool) -> None:
            super().__init__(clock, is_forwarded=is_forwarded)
            budgets.append(self)

    monkeypatch.setattr("services.query.http.server.RetryBudget", NotedBudget)
    instance = Instance(replace(dependencies_of(a_state()), clock=clock), hot=True, others=[rows])
    async with instance.server.serving() as instance.port, instance.connected() as connection:
        head, _, body = request("/v1/tables/limits/a", "PUT", body=b"{}").partition(b"\r\n\r\n")
        connection.send(head + b"\r\n\r\n")
        await until(lambda: bool(budgets))
        clock.by = 2 * PATIENCE_S
        connection.send(body)
        assert ((await connection.response()).status, rows.attempts) == (200, 2)
