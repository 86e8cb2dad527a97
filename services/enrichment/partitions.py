"""The partitions that are assigned to a worker, each with its state."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from services.enrichment.partition_state import PartitionState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import timedelta

    from contracts import Application
    from contracts.metrics.counts import Counts
    from contracts.records.record import Record
    from services.enrichment.backpressure import Backpressure
    from services.enrichment.settings import EnrichmentSettings


class Partitions:
    """One PartitionState per assigned partition. Implements `source.RebalanceListener`."""

    def __init__(
        self,
        application: Application,
        settings: EnrichmentSettings,
        counts: Counts,
        clock: Callable[[], float],
        backpressure: Backpressure,
    ) -> None:
        self._size = settings.recent_entries
        self._age = application.kept_for
        self._drain = settings.drain
        self._counts = counts
        self._clock = clock
        self._window = settings.max_uncommitted
        self._backpressure = backpressure
        self._states: dict[int, PartitionState] = {}
        self.is_member = False
        """Whether the group has assigned partitions to this worker, possibly none."""
        self._changed = asyncio.Event()
        """A position was committed, or a partition was revoked."""

    # RebalanceListener

    def on_assigned(self, partitions: list[int]) -> None:
        """Create a state for each partition."""
        self.is_member = True
        for partition in partitions:
            self._create(partition)

    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        """Wait a limited time for the running requests, abandon the others, and return the positions to commit."""
        states = {partition: self._states[partition] for partition in partitions if partition in self._states}
        for state in states.values():
            state.close()
        await _wait_for_tasks(states.values(), self._drain)
        positions = _positions(states)
        for partition, state in states.items():  # a partition may be assigned again by now, with a new state
            self._abandon(partition, state)
        self._changed.set()
        return positions

    def on_lost(self, partitions: list[int]) -> None:
        """Abandon the requests of these partitions."""
        for partition in partitions:
            self._abandon(partition, self._states.get(partition))
        self._changed.set()

    def on_committed(self, positions: dict[int, int]) -> None:
        """Note the positions that the broker has confirmed."""
        self._counts.add(metrics.COMMITS)
        for partition, position in positions.items():
            if state := self._states.get(partition):
                state.confirm(position)
        self._changed.set()

    def on_error(self) -> None:
        """Count the error; the log has its text."""
        self._counts.add(metrics.KAFKA_ERRORS)

    # Reading and committing

    def route(self, records: Iterable[Record]) -> list[tuple[PartitionState, Record]]:
        """Return each record with the state of its partition, without those of revoked partitions."""
        return [(state, record) for record in records if (state := self._state_for(record))]

    def positions(self) -> dict[int, int]:
        """Return the positions to commit now."""
        return _positions(self._states)

    def full(self) -> frozenset[int]:
        """Return the partitions that were read as far beyond an unfinished offset as the settings allow."""
        return frozenset(number for number, state in self._states.items() if state.uncommitted >= self._window)

    # Deferred requests

    def with_deferred(self, api: str) -> list[tuple[int, PartitionState]]:
        """Return the partitions with deferred requests of an API, without those that are being revoked."""
        states = self._states.items()
        return [(number, state) for number, state in states if state.has_deferred(api) and not state.is_closed]

    def deferred_count(self, api: str) -> int:
        """Return how many snapshots are to be planned again for an API."""
        return sum(state.deferred_count(api) for _, state in self.with_deferred(api))

    # Shutdown

    async def drain(self, within: timedelta) -> None:
        """Start no new request, wait a limited time for the running ones, and abandon the others."""
        for state in self._states.values():
            state.close()
        await _wait_for_tasks(self._states.values(), within)
        self.abandon_all()

    async def wait_for_commits(self, within: timedelta) -> None:
        """Wait a limited time until the broker has confirmed all positions.

        The broker refuses commits during a rebalance. A worker that left then would have finished requests repeated.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within.total_seconds()):
                while not all(state.is_committed for state in self._states.values()):
                    self._changed.clear()
                    await self._changed.wait()

    def abandon_all(self) -> None:
        """Abandon the requests of all partitions."""
        for state in self._states.values():
            self._counts.add(metrics.ABANDONED, by=state.abandon())

    # Metrics

    @property
    def in_flight(self) -> int:
        """The number of running requests."""
        return sum(len(state.tasks) for state in self._states.values())

    def measure(self) -> None:
        """Set the gauges."""
        self._counts.set(metrics.PARTITIONS, len(self._states))
        self._counts.set(metrics.IN_FLIGHT, self.in_flight)
        self._counts.set(metrics.FULL, len(self.full()))
        self._counts.set(metrics.UNCOMMITTED, sum(state.uncommitted for state in self._states.values()))

    def _create(self, partition: int) -> PartitionState:
        """Create the state of a partition. It replaces the one that exists."""
        self._abandon(partition, self._states.get(partition))
        state = PartitionState(self._size, self._age, self._clock, self._backpressure)
        self._states[partition] = state
        return state

    def _abandon(self, partition: int, state: PartitionState | None) -> None:
        if state is not None and self._states.get(partition) is state:
            del self._states[partition]
            self._counts.add(metrics.ABANDONED, by=state.abandon())

    def _state_for(self, record: Record) -> PartitionState | None:
        """The state of a record's partition; a new one if the partition went back (topic recreated, offsets reset)."""
        state = self._states.get(record.partition)
        if state is None or state.advance(record.offset):
            return state
        state = self._create(record.partition)
        state.advance(record.offset)
        return state


def _positions(states: Mapping[int, PartitionState]) -> dict[int, int]:
    """The positions to commit, without partitions of which nothing was read."""
    found = {partition: state.position for partition, state in states.items()}
    return {partition: position for partition, position in found.items() if position is not None}


async def _wait_for_tasks(states: Collection[PartitionState], within: timedelta) -> None:
    """Wait for the running tasks, and for those that start meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within.total_seconds()):
            while tasks := [task for state in states for task in state.tasks]:
                await asyncio.wait(tasks)
