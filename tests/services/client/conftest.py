"""Instances of the fake service."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from tests.services.client.fake import Fake, cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    """Give one instance that tells of no others."""
    async with Fake().serving() as one:
        yield one


@pytest.fixture
async def fakes() -> AsyncIterator[list[Fake]]:
    """Give three that know each other."""
    async with AsyncExitStack() as stack:
        three = [await stack.enter_async_context(Fake(name).serving()) for name in ("q1", "q2", "q3")]
        cluster(*three)
        yield three
