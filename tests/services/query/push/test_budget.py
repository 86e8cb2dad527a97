"""The names of all clients together have a budget: the slowest clients are disconnected, with a reason."""

from __future__ import annotations

import asyncio
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import orjson
from aiohttp import WSMsgType

from contracts.metrics import query as names
from tests.services.query.push.serving import RARE, Client, Instance, connected, eventually, watching

BOUND = 512 * 1024
LIMITS = replace(RARE, all_waiting_bytes=BOUND, stalled_s=30)
BIG = "x" * 10_000


def _stop_reading(client: Client) -> Any:
    transport: Any = client.socket._conn.transport  # type: ignore[union-attr]  # noqa: SLF001  # stops reading
    transport.pause_reading()
    return transport


def _waiting(instance: Instance) -> int:
    return instance.watching._budget.used  # noqa: SLF001  # the metric lags behind


def test_names_of_clients_that_never_read_stay_within_the_budget() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:  # in which nothing else allocates memory
        traced = process.submit(traced_bytes).result()
    assert traced < 8 * 1024 * 1024, "not one copy of all that was sent, 20 MB"


def traced_bytes() -> int:
    """Send 2,000 changes to clients that read nothing; return how many bytes are in use then."""
    return asyncio.run(_sent_to_clients_that_never_read())


async def _sent_to_clients_that_never_read() -> int:
    async with Instance(limits=LIMITS).serving() as instance, AsyncExitStack() as stack:
        for _ in range(20):
            client = await stack.enter_async_context(connected(instance, max_msg_size=0))
            await client.subscribe("all", prefix="", current=False)
            transport = _stop_reading(client)
            stack.callback(transport.abort)  # closing the WebSocket of a client that reads nothing takes long
        tracemalloc.start()
        while not instance.dependencies.counts.get(names.CUT_OFF):
            instance.change(f"k{instance.offset}", 1, {"pad": BIG})
            await asyncio.sleep(0)
        for _ in range(2_000):
            instance.change(f"k{instance.offset}", 1, {"pad": BIG})
            assert _waiting(instance) <= BOUND
        return tracemalloc.get_traced_memory()[0]


async def test_the_slowest_clients_are_disconnected_and_others_continue() -> None:
    async with (
        Instance(limits=LIMITS).serving() as instance,
        connected(instance, max_msg_size=0) as slow,
        connected(instance, max_msg_size=0) as quick,
    ):
        await slow.subscribe("all", prefix="", current=False)
        await quick.subscribe("one", key="k1", current=False)
        transport = _stop_reading(slow)
        while not instance.dependencies.counts.get(names.CUT_OFF):
            instance.change(f"k{instance.offset}", 1, {"pad": BIG})
            await asyncio.sleep(0)
        instance.change("k1", 2)
        assert (await quick.until("state"))[-1]["type"] == "state"
        transport.resume_reading()
        messages = [message async for message in slow.socket if message.type is WSMsgType.TEXT]
        last = orjson.loads(messages[-1].data)
        assert (last["type"], last["id"], last["problem"]["type"]) == ("error", None, "too_slow")
        assert slow.socket.close_code == 1013
        await eventually(lambda: _waiting(instance) == 0)
        assert instance.dependencies.counts.get(names.CUT_OFF) == 1


async def test_the_last_event_of_a_disconnected_client_is_the_problem() -> None:
    limits, path = replace(LIMITS, all_waiting_bytes=1024), "/v1/states/flights/{}/watch"
    async with (
        Instance(limits=limits).serving() as instance,
        watching(instance, path.format("a")) as one,
        watching(instance, path.format("b")) as other,
    ):
        for events in (one, other):
            assert (await events.next()).event == "never_seen"
        instance.watching.changed([instance.put("a", 1), instance.put("b", 1)])  # one name too many
        for events in (one, other):
            found = await events.next()
            assert (found.event, found.data["type"]) == ("problem", "too_slow")
