"""Clients that pipeline requests or read no responses: other clients are served, and memory is bounded."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import pytest

from contracts.metrics import query as metrics
from services.query.http.connection import REQUESTS_PER_TURN, RequestPacer
from tests.services.query.http.instance import Instance, answering
from tests.services.query.http.test_connection import GET, REQUESTS, a_world
from tests.services.query.in_memory import ScratchStore, until

BLOCK = 3_000
ROOM = 16 * 1024 * 1024
"""Bytes of one connection that the system may buffer at both ends, and those of the service."""
BUFFER_BYTES = 65_536
"""Of a client that does not read: fixed, as Linux may enlarge it beyond a response."""
STUCK = 2_000
"""Turns of the event loop without progress."""


@pytest.fixture(params=["a key", "fields", "a batch"])
def pipelined(request: pytest.FixtureRequest) -> bytes:
    """Return the request that is repeated."""
    return REQUESTS[request.param]


async def test_other_clients_are_served_during_a_block_of_requests(pipelined: bytes) -> None:
    async with answering(a_world().dependencies, hot=True) as instance, instance.connected() as greedy:
        greedy.send(pipelined * BLOCK)
        await until(lambda: _answered(instance) > 0)
        for _ in range(5):
            assert (await instance.ask("/v1/states/flights/none")).status == 404
        assert _answered(instance) < BLOCK
        for _ in range(BLOCK):
            assert (await greedy.response()).status == 200


async def test_one_turn_of_the_loop_answers_one_request_per_connection(pipelined: bytes) -> None:
    async with answering(a_world().dependencies, hot=True) as instance, instance.connected() as greedy:
        greedy.send(pipelined * 200)
        most = before = 0
        while _answered(instance) < 200:
            most, before = max(most, _answered(instance) - before), _answered(instance)
            await asyncio.sleep(0)
        assert most == 1


async def test_requests_start_in_order_a_few_per_turn_of_the_loop() -> None:
    turns, begun = RequestPacer(), list[int]()

    async def begin(number: int) -> None:
        await turns.next()
        begun.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(100):
            tasks.create_task(begin(number))
        before = 0
        while len(begun) < 100:
            await asyncio.sleep(0)
            assert len(begun) - before <= REQUESTS_PER_TURN
            before = len(begun)
    assert begun == list(range(100))


async def test_a_client_that_reads_no_responses_is_not_read_further(pipelined: bytes) -> None:
    """Each client sends until the socket blocks: the bytes that it sends, and the responses, are bounded."""
    async with answering(a_world().dependencies, hot=True) as instance:
        store = instance.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        store.put("UA1", version=2, value=b'{"a":{"b":"' + b"x" * 100_000 + b'"}}')
        with ExitStack() as stack:
            silent = [stack.enter_context(_silent(instance)) for _ in range(5)]
            sent = [await _sent_until_stuck(one, pipelined * BLOCK) for one in silent]
            assert max(sent) < ROOM
            assert _answered(instance) * 100_000 < len(silent) * ROOM
            response = await instance.ask("/v1/states/flights/none")
            assert response.status == 404


async def test_a_blocked_connection_resumes_when_its_client_reads() -> None:
    async with answering(a_world().dependencies, hot=True) as instance, instance.connected(BUFFER_BYTES) as slow:
        store = instance.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        store.put("UA1", version=2, value=b'{"a":"' + b"x" * 5_000_000 + b'"}')
        slow.send(GET)
        await until(lambda: _answered(instance) == 1)
        slow.send(GET)
        for _ in range(10):
            assert (await instance.ask("/v1/states/flights/none")).status == 404
        assert instance.dependencies.counts.get(metrics.REQUESTS, "200") == 1
        for _ in range(2):
            assert len((await slow.response()).body) > 5_000_000


def _answered(instance: Instance) -> int:
    return round(instance.dependencies.counts.get(metrics.REQUESTS, "200"))


def _silent(instance: Instance) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", instance.port))
    found.setblocking(False)  # noqa: FBT003  # positional only
    return found


async def _sent_until_stuck(one: socket.socket, block: bytes) -> int:
    """Send until the service has read nothing for many turns of the loop; return the number of bytes sent."""
    sent = stuck = 0
    while stuck < STUCK and sent < ROOM:
        try:
            sent, stuck = sent + one.send(block), 0
        except BlockingIOError:
            stuck += 1
        await asyncio.sleep(0)
    return sent
