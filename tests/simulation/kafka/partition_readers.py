"""A reader of assigned partitions of the model broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contracts.records.record import Record
from tests.simulation.kafka.network import POLL_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from services.runtime.kafka.values import Partition
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

BATCH = 1_000


class ModelPartitionReader:
    """Calls the work in the event loop, which it must not wait for. Implements PartitionReader."""

    def __init__(self, broker: Broker, network: Network, batch: int = BATCH) -> None:
        self._broker = broker
        self._network = network
        self._batch = batch
        self._positions: dict[Partition, int] = {}
        self._ended: dict[Partition, int] = {}
        self._reported: dict[Partition, int] = {}
        """The ends that were reported: each is reported once."""
        self._lost: dict[Partition, int] = {}
        self._is_idle = False
        self.is_stopping = False

    async def run(self, work: Callable[[], None]) -> None:
        """See `PartitionReader.run`."""
        try:
            while True:
                work()
                await asyncio.sleep(POLL_S if self._is_idle else self._network.latency_s())
        finally:
            self.is_stopping = True

    def add(self, partition: Partition, position: int | None) -> None:
        """See `PartitionReader.add`."""
        self._positions[partition] = self._broker.topics.log(partition).start if position is None else position
        self._reported.pop(partition, None)

    def remove(self, partition: Partition) -> None:
        """See `PartitionReader.remove`."""
        self._positions.pop(partition, None)

    def replace(self, positions: Mapping[Partition, int | None]) -> None:
        """See `PartitionReader.replace`."""
        self._positions.clear()
        for partition, position in positions.items():
            self.add(partition, position)

    def known_end(self, partition: Partition) -> int | None:
        """See `PartitionReader.known_end`."""
        return self._broker.topics.log(partition).end

    def read(self, *, wait: bool) -> Iterator[Sequence[Record]]:
        """See `PartitionReader.read`. It yields one piece for each partition with records."""
        self._ended, self._lost, self._is_idle = {}, {}, wait
        if not self._network.is_up:
            return
        for partition in list(self._positions):
            if records := self._records(partition):
                self._is_idle = False
                yield records

    def ended(self) -> Mapping[Partition, int]:
        """See `PartitionReader.ended`."""
        return self._ended

    def lost(self) -> Mapping[Partition, int]:
        """See `PartitionReader.lost`."""
        return self._lost

    def _records(self, partition: Partition) -> list[Record]:
        log, position = self._broker.topics.log(partition), self._positions[partition]
        if log.leaderless:
            return []
        if not log.start <= position <= log.end:
            self._lost[partition] = log.end
            del self._positions[partition]
            return []
        entries, following = log.read(position, self._batch)
        self._positions[partition] = following
        if following == log.stable_end and self._reported.get(partition) != following:
            self._ended[partition] = self._reported[partition] = following
        return [
            Record(*partition, entry.offset, entry.timestamp_ms, entry.key, entry.value, entry.headers)
            for entry in entries
        ]
