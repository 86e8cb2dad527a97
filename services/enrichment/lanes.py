"""The partitions that a worker has now: it is told when they come and go."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from services.enrichment.lane import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import timedelta

    from contracts import Application
    from contracts.metrics.counts import Counts
    from services.enrichment.pressure import Pressure
    from services.enrichment.settings import EnrichmentSettings
    from services.enrichment.source import Record


class Lanes:
    """A lane per assigned partition. Implements `source.Listener`."""

    def __init__(
        self,
        application: Application,
        settings: EnrichmentSettings,
        counts: Counts,
        clock: Callable[[], float],
        pressure: Pressure,
    ) -> None:
        self._size = settings.remember
        self._age = application.kept_for
        self._drain = settings.drain
        self._counts = counts
        self._clock = clock
        self._window = settings.window
        self._pressure = pressure
        self._lanes: dict[int, Lane] = {}
        self.joined = False
        """Whether the group has given us our partitions, if only none."""
        self._news = asyncio.Event()
        """Something was committed, or went away."""

    def assigned(self, partitions: list[int]) -> None:
        """Begin a lane for each."""
        self.joined = True
        for partition in partitions:
            self._begin(partition)

    async def release(self, partitions: list[int]) -> dict[int, int]:
        """Let the requests under way finish, for a while; those that do not are given up. The positions to commit."""
        lanes = {partition: self._lanes[partition] for partition in partitions if partition in self._lanes}
        for lane in lanes.values():
            lane.closed = True
        await _finished(lanes.values(), self._drain)
        positions = _positions(lanes)
        for partition, lane in lanes.items():  # a partition may be back by now, with a lane of its own
            self._abandon(partition, lane)
        self._news.set()
        return positions

    def lost(self, partitions: list[int]) -> None:
        """Give up all that is under way there."""
        for partition in partitions:
            self._abandon(partition, self._lanes.get(partition))
        self._news.set()

    def _abandon(self, partition: int, lane: Lane | None) -> None:
        if lane is not None and self._lanes.get(partition) is lane:
            del self._lanes[partition]
            self._counts.add(metrics.ABANDONED, by=lane.abandon())

    def committed(self, positions: dict[int, int]) -> None:
        """Note it."""
        self._counts.add(metrics.COMMITS)
        for partition, position in positions.items():
            if lane := self._lanes.get(partition):
                lane.committed = position
        self._news.set()

    def survived(self) -> None:
        """Count it; the log says which error it was."""
        self._counts.add(metrics.KAFKA_ERRORS)

    def sorted(self, records: Iterable[Record]) -> list[tuple[Lane, Record]]:
        """Each record with its partition's lane; those of partitions that went away meanwhile are left out."""
        return [(lane, record) for record in records if (lane := self._lane(record))]

    def positions(self) -> dict[int, int]:
        """What may be committed now."""
        return _positions(self._lanes)

    def full(self) -> frozenset[int]:
        """The partitions that were read so far beyond something unfinished that they must wait for it."""
        return frozenset(number for number, lane in self._lanes.items() if lane.offsets.span >= self._window)

    def parked(self, api: str) -> list[tuple[int, Lane]]:
        """The partitions with snapshots to be planned again for an API, less those that go away."""
        return [(number, lane) for number, lane in self._lanes.items() if api in lane.parked and not lane.closed]

    def abandon(self) -> None:
        """Give up all that is under way or waits."""
        for lane in self._lanes.values():
            self._counts.add(metrics.ABANDONED, by=lane.abandon())

    async def drained(self, within: timedelta) -> None:
        """Begin nothing more, and wait for what is under way, so long at most."""
        for lane in self._lanes.values():
            lane.closed = True
        await _finished(self._lanes.values(), within)
        self.abandon()

    @property
    def in_flight(self) -> int:
        """How many requests are under way."""
        return sum(len(lane.tasks) for lane in self._lanes.values())

    async def all_committed(self, within: timedelta) -> None:
        """Wait until all that is finished is committed, so long at most.

        In the midst of a rebalance the broker refuses commits: who left then would have finished work done again.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within.total_seconds()):
                while any(lane.offsets.position != lane.committed for lane in self._lanes.values()):
                    self._news.clear()
                    await self._news.wait()

    def measure(self) -> None:
        """Set the gauges."""
        self._counts.set(metrics.PARTITIONS, len(self._lanes))
        self._counts.set(metrics.IN_FLIGHT, self.in_flight)
        self._counts.set(metrics.FULL, len(self.full()))
        self._counts.set(metrics.UNCOMMITTED, sum(lane.offsets.span for lane in self._lanes.values()))

    def _begin(self, partition: int) -> Lane:
        """A new lane in the place of the one that the partition has, if it has one."""
        self._abandon(partition, self._lanes.get(partition))
        lane = self._lanes[partition] = Lane(self._size, self._age, self._clock, self._pressure)
        return lane

    def _lane(self, record: Record) -> Lane | None:
        """The lane of a record. One that goes back (topic made anew, position reset) begins anew."""
        lane = self._lanes.get(record.partition)
        if lane is None:
            return None
        if record.offset <= lane.read:
            lane = self._begin(record.partition)
        lane.read = record.offset
        return lane


def _positions(lanes: Mapping[int, Lane]) -> dict[int, int]:
    """What may be committed of each; nothing of those of which nothing was read."""
    found = {partition: lane.offsets.position for partition, lane in lanes.items()}
    return {partition: position for partition, position in found.items() if position is not None}


async def _finished(lanes: Collection[Lane], within: timedelta) -> None:
    """Wait for what is under way, and for what begins meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within.total_seconds()):
            while tasks := [task for lane in lanes for task in lane.tasks]:
                await asyncio.wait(tasks)
