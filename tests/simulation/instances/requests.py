"""The ways of requests between clients and instances: some are late or lost, or wait for an instance that is frozen."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import ClientConnectionError

from tests.simulation.instances.sockets import OPENED, Socket, Way, connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from random import Random

    from tests.simulation.instances.handlers import Reply, Request
    from tests.simulation.instances.instance import SimulatedInstance
    from tests.simulation.loop import SimulationLoop

SLOW = 0.05
"""The share of ways that may take the longest time."""
USUAL_S = 0.01
NO_HEADERS: Mapping[str, str] = {}


class Requests:
    """Brings requests to the instances of a run, and their answers back."""

    def __init__(self, loop: SimulationLoop, random: Random, loss: float, slowest_s: float, room: int) -> None:
        self.instances: dict[str, SimulatedInstance] = {}
        self.apart: list[str] = []
        """The instances that do not reach others, nor others them."""
        self._loop = loop
        self._random = random
        self._loss = loss
        self._slowest_s = slowest_s
        self._room = room

    async def send(self, name: str, request: Request) -> Reply | None:
        """Return the answer of an instance, whenever it comes; None if the connection is refused or lost."""
        await asyncio.sleep(self._way_s())
        instance = self.instances[name]
        if instance.cluster is None or self._random.random() < self._loss:
            return None
        answer: asyncio.Future[Reply | None] = self._loop.create_future()
        self._loop.call_soon(instance.receive, request, answer, context=instance.context)
        found = await answer
        await asyncio.sleep(self._way_s())
        return None if self._random.random() < self._loss else found

    async def forward(self, source: str, name: str, request: Request) -> Reply | None:
        """Return the answer of another instance, whenever it comes."""
        if self._is_apart(source, name):
            await self._loop.create_future()
        return await self.send(name, request)

    @asynccontextmanager
    async def connect(
        self, source: str, url: str, silence_s: float | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[Socket]:
        """Open a WebSocket to an instance, from another one with its headers, or with `""` from a client.

        Raises ClientConnectionError.
        """
        name = url.removeprefix("http://")
        await asyncio.sleep(self._way_s())
        instance = self.instances[name]
        if instance.cluster is None or self._is_apart(source, name):
            raise ClientConnectionError("refused")
        way = Way(self._way_s, lambda: self._is_apart(source, name), self._room)
        client, service = connected(self._loop, way, silence_s)
        instance.sockets[service] = None
        if source:
            self.instances[source].sockets[client] = None
        self._loop.call_soon(instance.accept, service, bool(source), headers, context=instance.context)
        try:
            if await client.receive() is not OPENED:
                raise ClientConnectionError("reset")
            yield client
        finally:
            client.end()

    def _is_apart(self, source: str, name: str) -> bool:
        return bool(source) and bool({source, name} & {*self.apart})

    def _way_s(self) -> float:
        longest = self._slowest_s if self._random.random() < SLOW else USUAL_S
        return self._random.uniform(0.0, longest)


def settle(answer: asyncio.Future[Reply | None], found: Reply | None) -> None:
    """Give an answer, unless nobody waits for it any more."""
    if not answer.done():
        answer.set_result(found)
