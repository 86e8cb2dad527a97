"""Each test has times of its own, and may have an API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.times import now
from tests.services.enrichment.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(autouse=True)
def times() -> None:
    """The times of a test start with it."""
    now.cache_clear()


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """Give an API that answers at once."""
    async with Registry().serving() as running:
        yield running
