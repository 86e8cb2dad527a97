"""Instances of the fake service."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from tests.services.client.fake_service import Fake, cluster
from tests.services.client.streaming import Streaming

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    """Give one instance without a directory of instances."""
    async with Fake().serving() as one:
        yield one


@pytest.fixture
async def fakes() -> AsyncIterator[list[Fake]]:
    """Give three instances that list each other."""
    async with AsyncExitStack() as stack:
        three = [await stack.enter_async_context(Fake(name).serving()) for name in ("q1", "q2", "q3")]
        cluster(*three)
        yield three


@pytest.fixture
async def streaming() -> AsyncIterator[Streaming]:
    """Give one instance whose streams send what the test queues."""
    async with Streaming().serving() as one:
        yield one


@pytest.fixture
async def pair() -> AsyncIterator[list[Streaming]]:
    """Give two streaming instances that list each other."""
    async with Streaming("q1").serving() as first, Streaming("q2").serving() as second:
        cluster(first, second)
        yield [first, second]
