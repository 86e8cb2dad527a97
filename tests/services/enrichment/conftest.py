"""Fixtures of the worker's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.enrichment.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """Give an API that runs."""
    async with Registry().serving() as running:
        yield running
