"""The positions of a reader in partitions, and the ends of its ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Record
from services.runtime.errors import TopicReadError
from tests.simulation.kafka.errors import reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from services.runtime.kafka.values import OffsetRange, Partition
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.log import PartitionLog
    from tests.simulation.kafka.network import Network

BATCH = 1_000
ENDLESS = float("inf")


class Cursor:
    """Reads assigned partitions, each up to the end of its range."""

    def __init__(self, broker: Broker, network: Network, patience_s: float) -> None:
        self._broker = broker
        self._network = network
        self._patience_s = patience_s
        self._positions: dict[Partition, int] = {}
        self._ends: dict[Partition, float] = {}
        self._ended_at: dict[Partition, float] = {}
        """The times since which partitions have no more records."""

    def assign(self, ranges: Mapping[Partition, OffsetRange]) -> None:
        """Read these ranges instead."""
        self._positions = {partition: one.start for partition, one in ranges.items()}
        self._ends = {partition: ENDLESS if one.end is None else one.end for partition, one in ranges.items()}
        self._ended_at = {}

    def follow(self) -> None:
        """Read what is behind the ranges."""
        self._ends = dict.fromkeys(self._positions, ENDLESS)

    @property
    def is_complete(self) -> bool:
        """Whether the ends of all ranges are reached."""
        return all(self._positions[one] >= end for one, end in self._ends.items())

    def next_records(self) -> Sequence[Record]:
        """Return the next records; none while the broker is away, or has no more.

        Raises TopicReadError, also if a partition has been shorter than its range for too long.
        """
        if not self._network.is_up:
            return []
        records: list[Record] = []
        for partition, end in self._ends.items():
            if self._positions[partition] < end:
                records += self._records(partition, end)
        return records

    def _records(self, partition: Partition, end: float) -> list[Record]:
        with reading([partition.topic]):
            log = self._broker.topics.log(partition)
        start = fetch_position(log, self._positions[partition])
        entries, position = log.read(start, BATCH)
        records = [
            Record(*partition, entry.offset, entry.timestamp_ms, entry.key, entry.value, entry.headers)
            for entry in entries
        ]
        within = [record for record in records if record.offset < end]
        if len(within) < len(records):
            position = records[len(within)].offset
        self._positions[partition] = position
        if within or position > log.stable_end:  # a client reports no end within an open transaction
            self._ended_at.pop(partition, None)
        else:
            self._require_end(partition)
        return within

    def _require_end(self, partition: Partition) -> None:
        now, position, end = self._network.time.time(), self._positions[partition], self._ends[partition]
        if now - self._ended_at.setdefault(partition, now) > self._patience_s and position < end < ENDLESS:
            detail = f"partition {partition.number} ends before {position}, and had records up to {end:.0f}"
            raise TopicReadError(partition.topic, "ENDS_EARLY", detail)


def fetch_position(log: PartitionLog, position: int) -> int:
    """Return the position from which a client reads: the first offset in place of one that the log does not have."""
    return position if log.start <= position <= log.end else log.start
