"""The broker and the connections of a simulation: clients wait for what happens instead of asking again and again."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from contracts.records.record import Record
from tests.simulation.blocking import ProcessTime, is_blocking_call
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.network import POLL_S, Network

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from services.runtime.kafka.values import Output, Partition
    from tests.simulation.loop import SimulationLoop


class Polls(NamedTuple):
    """The first pause of a client, and the longest one while nothing happens."""

    first_s: float
    longest_s: float


WORKER_POLLS = Polls(POLL_S, 10.0)
"""Those of a worker, which does more than to read at each poll. An hour of polls every 0.1 s would take seconds."""
NO_POLLS = Polls(float("inf"), float("inf"))
"""Those of a client that does nothing until something happens."""


class WatchedBroker(Broker):
    """A broker that wakes the clients that wait for a record of a topic."""

    def __init__(self, loop: SimulationLoop, start: datetime, random: Random) -> None:
        super().__init__(loop, start, random)
        self.readers: dict[str, dict[ProcessNetwork, None]] = {}
        """The clients that wait, by topic, in their order."""
        self.written: dict[str, list[Record]] = defaultdict(list)
        """All records that were appended, by topic, also those that compaction has removed since; no copies of them,
        which only transactions write."""

    @override
    def append(self, partition: Partition, output: Output, transaction: int | None = None) -> int:
        offset = super().append(partition, output, transaction)
        if transaction is None:
            entry = self.topics.log(partition).entry(offset)
            record = Record(*partition, entry.offset, entry.timestamp_ms, entry.key, entry.value, entry.headers)
            self.written[partition.topic].append(record)
        for network in self.readers.pop(partition.topic, ()):
            network.wake()
        return offset


class ProcessNetwork(Network):
    """The connection of a process. Its pauses double while nothing happens, and end when something does."""

    def __init__(self, loop: SimulationLoop, random: Random, broker: WatchedBroker, polls: Polls) -> None:
        super().__init__(ProcessTime(loop), random, lambda found: found.uniform(0.0005, 0.02))
        self._broker = broker
        self._loop = loop
        self._polls = polls
        self.pause_s = polls.first_s
        """The next pause."""
        self.has_leaders = True
        """Whether the partitions have leaders, which take what producers send."""
        self._pauses: list[asyncio.Future[None]] = []
        self._requests_left = 0
        self._interrupt: Callable[[], None]

    @override
    async def pass_through(self, until: float = float("inf")) -> bool:
        self.wake()
        return await super().pass_through(until)

    @override
    async def reach_leaders(self, until: float) -> bool:
        while not self.has_leaders:
            if self._loop.time() >= until:
                return False
            await self.pause(until=until)
        is_passed = await self.pass_through(until)
        return is_passed and self._loop.time() < until  # a process that was frozen meanwhile drops what it has not sent

    @override
    async def pause(self, *topics: str, until: float = float("inf")) -> None:
        pause: asyncio.Future[None] = self._loop.create_future()
        self._pauses.append(pause)
        for topic in topics:
            self._broker.readers.setdefault(topic, {})[self] = None
        timer = self._loop.call_at(min(until, self._loop.time() + self.pause_s), _end, pause)
        self.pause_s = min(2 * self.pause_s, self._polls.longest_s)
        try:
            await pause
        finally:
            timer.cancel()
            if pause in self._pauses:
                self._pauses.remove(pause)

    def latency_s(self) -> float:
        """Return the time that the next request and its answer take."""
        return self._latency_s(self._random)

    @override
    def require(self) -> None:
        super().require()
        if is_blocking_call():
            self.time.sleep(self.latency_s())

    def interrupt(self, requests: int, act: Callable[[], None]) -> None:
        """Call `act` when the broker has carried out so many more requests, before it answers."""
        self._requests_left, self._interrupt = requests, act

    @override
    def carry_out(self) -> None:
        self._requests_left -= 1
        if self._requests_left == 0:
            self._interrupt()

    def wake(self) -> None:
        """End the pauses: there is something to read, to commit, or a connection again."""
        self.pause_s = self._polls.first_s
        pauses, self._pauses = self._pauses, []
        for pause in pauses:
            _end(pause)


def _end(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)
