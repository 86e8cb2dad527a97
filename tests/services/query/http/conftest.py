"""Runs the tests of this folder on uvloop, as the service does, and gives an instance that serves flights.

The transports of uvloop differ from those of asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import uvloop

from tests.services.query.http.flights import FLIGHTS
from tests.services.query.http.instance import answering
from tests.services.query.in_memory import dependencies_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Mapping

    from tests.services.query.http.instance import Instance


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the event loop factory."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(params=["hot", "aiohttp"])
async def instance(request: pytest.FixtureRequest) -> AsyncIterator[Instance]:
    """Give an instance that serves flights by the fast path and by aiohttp."""
    async with answering(dependencies_of(FLIGHTS), hot=request.param == "hot") as found:
        yield found
