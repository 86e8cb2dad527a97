"""The stand-in for an API, called as a worker calls it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import aiohttp
import pytest

from bench.enrichment.api import serve
from bench.enrichment.behaviour import Behaviour, place
from bench.enrichment.ledger import await_api, fetch
from bench.harness.background import Background
from services.broker.readiness import wait_until
from tests.services.broker.embedded import free_ports

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SOON_S = 20


def running(port: int, behaviour: Behaviour) -> AbstractContextManager[Background[None]]:
    return Background(serve, port, behaviour)


async def status(session: aiohttp.ClientSession, number: int) -> int:
    async with session.get(f"/places/{number}") as response:
        if response.status == 200:
            assert await response.json() == place(number)
        return response.status


async def statuses(port: int, numbers: range) -> list[int]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        return await asyncio.gather(*(status(session, number) for number in numbers))


async def timed(port: int, number: int) -> float:
    began = time.monotonic()
    assert await statuses(port, range(number, number + 1)) == [200]
    return time.monotonic() - began


@pytest.fixture
def port() -> int:
    return free_ports(1)


async def test_it_answers_after_its_latency_and_slow_ones_later(port: int) -> None:
    with running(port, Behaviour(latency_s=0.05, slow_one_in=10, slow_s=0.4)):
        await_api(port)
        assert 0.05 <= await timed(port, 1) < 0.4
        assert await timed(port, 10) >= 0.4
        ledger = fetch(port)
        assert (ledger.calls, ledger.repeated) == (2, 0)
        await timed(port, 1)
        assert fetch(port).repeated == 1


async def test_calls_beyond_the_quota_get_429_and_are_counted(port: int) -> None:
    with running(port, Behaviour(quota=50)):
        await_api(port)
        found = await statuses(port, range(100))
        assert 0 < found.count(200) < 60
        ledger = fetch(port)
        assert (ledger.calls, ledger.refused) == (found.count(200), found.count(429))


async def test_it_goes_down_once_and_comes_back(port: int) -> None:
    with running(port, Behaviour(down_after_s=0.3, down_s=0.5)):
        await_api(port)
        await statuses(port, range(1))
        await asyncio.to_thread(wait_until, lambda: not answers(port), "it is down", SOON_S)
        await asyncio.to_thread(wait_until, lambda: answers(port), "it is back", SOON_S)
        ledger = fetch(port)
        assert round(ledger.up - ledger.down, 2) >= 0.5  # timers are of whole milliseconds
        assert await statuses(port, range(1)) == [200]


def answers(port: int) -> bool:
    try:
        fetch(port)
    except OSError:
        return False
    return True
