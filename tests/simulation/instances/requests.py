"""The ways of requests between clients and instances: some are late or lost, or wait for an instance that is frozen."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import ClientConnectionError

from tests.simulation.instances.sockets import OPENED, Socket, Way, connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from services.query.lookup.decision import FoundEntry
    from services.query.lookup.problems import Problem
    from services.query.lookup.version_reference import VersionReference
    from tests.simulation.instances.instance import SimulatedInstance
    from tests.simulation.loop import SimulationLoop

    Outcome = FoundEntry | Problem

ANSWER_S = 1.0
"""How long a client and a forwarding instance wait for an answer."""
SLOW = 0.05
"""The share of ways that may take the longest time."""
USUAL_S = 0.01


class Request(NamedTuple):
    """A read of a key, from a version on if there is one. It is forwarded once at most."""

    key: str
    at_least: VersionReference | None = None
    is_forwarded: bool = False


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

    async def send(self, name: str, request: Request) -> Outcome | None:
        """Return the answer of an instance, whenever it comes; None if the connection is refused or lost."""
        await asyncio.sleep(self._way_s())
        instance = self.instances[name]
        if instance.cluster is None or self._random.random() < self._loss:
            return None
        answer: asyncio.Future[Outcome | None] = self._loop.create_future()
        self._loop.call_soon(instance.receive, request, answer, context=instance.context)
        found = await answer
        await asyncio.sleep(self._way_s())
        return None if self._random.random() < self._loss else found

    async def forward(self, source: str, name: str, request: Request) -> Outcome | None:
        """Return the answer of another instance; None without one in time."""
        if self._is_apart(source, name):
            await asyncio.sleep(ANSWER_S)
            return None
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self.send(name, request)
        except TimeoutError:
            return None

    @asynccontextmanager
    async def connect(self, source: str, url: str, silence_s: float | None = None) -> AsyncIterator[Socket]:
        """Open a WebSocket to an instance, from another one, or with `""` from a client.

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
        self._loop.call_soon(instance.accept, service, bool(source), context=instance.context)
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


def settle(answer: asyncio.Future[Outcome | None], found: Outcome | None) -> None:
    """Give an answer, unless nobody waits for it any more."""
    if not answer.done():
        answer.set_result(found)
