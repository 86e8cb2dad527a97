"""The connection of a process with the broker: delays and faults, which come from the simulation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from tests.simulation.kafka.errors import RefusedError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

POLL_S = 0.1
"""The pause of a client between two attempts."""
ANSWER_S = 10.0
"""The time after which a client gives a request up."""


class Time(Protocol):
    """The time of the simulation, in seconds."""

    def time(self) -> float:
        """Return the time: that of the event loop."""

    def sleep(self, seconds: float) -> None:
        """Let time pass, for a client that blocks its thread."""


class Network:
    """The connection of the clients of a process. `latency_s` returns the time that a request and its answer take."""

    def __init__(
        self, time: Time, random: random.Random, latency_s: Callable[[random.Random], float] = lambda _: 0.0
    ) -> None:
        self.time = time
        self.is_up = True
        self.lost_acknowledgements = 0
        """The number of acknowledgements that will not arrive: their records are written."""
        self._random = random
        self._latency_s = latency_s

    def require(self) -> None:
        """Require that a broker answers a blocking client. Raises RefusedError after the time of a request."""
        until = self.time.time() + ANSWER_S
        while not self.is_up:
            if self.time.time() >= until:
                raise RefusedError("_TRANSPORT")
            self.time.sleep(POLL_S)

    async def pass_through(self, until: float = float("inf")) -> bool:
        """Wait while the broker is away, and for the latency; return False if it is still away at this time."""
        while not self.is_up:
            if self.time.time() >= until:
                return False
            await self.pause(until=until)
        await asyncio.sleep(self.latency_s())
        return True

    async def reach_leaders(self, until: float) -> bool:
        """Do what `pass_through` does, for a request to write."""
        return await self.pass_through(until)

    def latency_s(self) -> float:
        """Return the time that the next request and its answer take."""
        return self._latency_s(self._random)

    async def pause(self, *topics: str, until: float = float("inf")) -> None:  # noqa: ARG002  # for others
        """Wait before the next attempt to reach the broker, or to read these topics, which have no further record."""
        await asyncio.sleep(POLL_S)

    def carry_out(self) -> None:
        """Note that the broker has carried out a request to write or to commit, and has not answered yet."""

    def loses_acknowledgement(self) -> bool:
        """Return whether the next acknowledgement is lost."""
        is_lost = self.lost_acknowledgements > 0
        self.lost_acknowledgements -= is_lost
        return is_lost
