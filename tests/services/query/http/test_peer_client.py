from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from pydantic import SecretStr
from yarl import URL

from services.query.cluster import Member
from services.query.http.peer_client import CONNECTIONS, ForwardedRequest, HttpPeerClient
from services.query.lookup.problems import ProblemError
from services.query.push.peer_connections import FORWARDED
from tests.services.query.in_memory import until
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATH = "/v1/states/flights/UA%2F1%20%C3%BC?fields=a.b"


class Other:
    """Another instance that responds with this status and records its requests."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = 200
        self.slow = asyncio.Event()
        self.slow.set()
        self.slow_waits = False
        """Whether only requests with a `wait` are slow."""
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.raw_path, dict(request.headers), await request.read()))
        if not self.slow_waits or "wait" in request.query:
            await self.slow.wait()
        return web.Response(status=self.status, body=self.name.encode(), headers={"ETag": '"7"'})

    @property
    def member(self) -> Member:
        return Member(self.name, self.url)


@pytest.fixture
async def others() -> AsyncIterator[list[Other]]:
    found, runners = [Other("two"), Other("three")], []
    for one in found:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", one.answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        one.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        runners.append(runner)
    yield found
    for one in found:
        one.slow.set()
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def peer_client() -> AsyncIterator[HttpPeerClient]:
    async with HttpPeerClient(SecretStr("of-the-instances"), answer_s=0.3) as made:
        yield made


async def test_a_request_is_forwarded_unchanged_with_one_hop_and_the_peer_token(
    others: list[Other], peer_client: HttpPeerClient
) -> None:
    request = ForwardedRequest(PATH, "POST", (("If-None-Match", '"1"'), ("Authorization", "Bearer client's")), b"{}")
    reply = await peer_client.forward([one.member for one in others], request)
    assert (reply.status, reply.body) == (200, b"two")
    assert ("etag", '"7"') in {(name.lower(), value) for name, value in reply.header_pairs()}
    ((method, path, headers, body),) = others[0].requests
    assert (method, path, body) == ("POST", PATH, b"{}")
    assert headers[FORWARDED] == "1"
    assert headers["Authorization"] == "Bearer of-the-instances"
    assert headers["If-None-Match"] == '"1"'
    assert others[1].requests == []


@pytest.mark.parametrize("status", [200, 304, 404, 410])
async def test_the_response_of_the_owner_is_returned(
    others: list[Other], peer_client: HttpPeerClient, status: int
) -> None:
    others[0].status = status
    assert (await peer_client.forward([one.member for one in others], ForwardedRequest(PATH))).status == status
    assert others[1].requests == []


@pytest.mark.parametrize("status", [421, 503, 401])
async def test_an_instance_that_cannot_answer_is_skipped(
    others: list[Other], peer_client: HttpPeerClient, status: int
) -> None:
    others[0].status = status
    assert (await peer_client.forward([one.member for one in others], ForwardedRequest(PATH))).body == b"three"


async def test_an_instance_that_hangs_or_is_down_is_skipped(others: list[Other], peer_client: HttpPeerClient) -> None:
    others[0].slow.clear()
    away = Member("away", f"http://127.0.0.1:{free_port_pair()}")
    assert (await peer_client.forward([away, *(one.member for one in others)], ForwardedRequest(PATH))).body == b"three"


async def test_the_503_of_an_owner_is_returned_if_all_catch_up(
    others: list[Other], peer_client: HttpPeerClient
) -> None:
    others[0].status = 503
    others[1].status = 421
    assert (await peer_client.forward([one.member for one in others], ForwardedRequest(PATH))).body == b"two"


async def test_without_a_reachable_instance_the_problem_may_be_retried(
    others: list[Other], peer_client: HttpPeerClient
) -> None:
    for one in others:
        one.status = 421
    with pytest.raises(ProblemError, match="two, three") as raised:
        await peer_client.forward([one.member for one in others], ForwardedRequest(PATH))
    assert (raised.value.problem.status, raised.value.problem.retry_after) == (503, 1)
    assert [len(one.requests) for one in others] == [1, 1]


async def test_the_timeout_includes_the_wait_of_the_request(others: list[Other], peer_client: HttpPeerClient) -> None:
    others[0].slow.clear()
    forwarding = asyncio.ensure_future(peer_client.forward([others[0].member], ForwardedRequest(f"{PATH}&wait=30")))
    done, _ = await asyncio.wait([forwarding], timeout=0.6)
    assert not done
    others[0].slow.set()
    assert (await forwarding).body == b"two"


async def test_reads_need_no_connection_of_requests_that_wait(others: list[Other], peer_client: HttpPeerClient) -> None:
    others[0].slow_waits = True
    others[0].slow.clear()
    waiting = ForwardedRequest(f"{PATH}&wait=30")
    async with asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(peer_client.forward([others[0].member], waiting)) for _ in range(CONNECTIONS)]
        await until(lambda: len(others[0].requests) == CONNECTIONS)
        assert (await peer_client.forward([others[0].member], ForwardedRequest(PATH))).body == b"two"
        others[0].slow.set()
    assert {wait.result().body for wait in waits} == {b"two"}


async def test_the_wait_of_the_request_is_that_of_all_instances(
    others: list[Other], peer_client: HttpPeerClient
) -> None:
    others[0].slow.clear()
    response = await peer_client.forward([one.member for one in others], ForwardedRequest(f"{PATH}&wait=0.3"))
    assert response.body == b"three"
    waits = [float(URL(one.requests[0][1], encoded=True).query["wait"]) for one in others]
    assert waits[0] == pytest.approx(0.3, abs=0.1)
    assert waits[1] == 0
