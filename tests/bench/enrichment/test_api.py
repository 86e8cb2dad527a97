"""The stand-in for an API, called as a worker calls it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import aiohttp
import pytest

from bench.enrichment.api import Behaviour, await_api, fetch_ledger, place, serve
from bench.harness.background import Background
from tests.services.tools.broker.embedded import free_ports

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


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
        assert fetch_ledger(port) == (2, 0)
        await timed(port, 1)
        assert fetch_ledger(port) == (3, 1)
