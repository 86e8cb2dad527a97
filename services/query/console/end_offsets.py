"""Reads the end offsets of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import LATEST, Partition

if TYPE_CHECKING:
    from collections.abc import Collection

    from services.runtime.kafka.interfaces import Admin

ANSWER_S = 2.0
Offsets = dict[str, dict[int, int]]


class EndOffsets:
    """Reads the end offset of each partition of these topics."""

    def __init__(self, admin: Admin, topics: Collection[str]) -> None:
        self._admin = admin
        self._topics = frozenset(topics)
        self._partitions: list[Partition] = []

    def read(self) -> Offsets | None:
        """Return the end offsets of the existing topics; None while the broker does not answer. It blocks."""
        try:
            if {partition.topic for partition in self._partitions} != self._topics:
                self._partitions = self._listed()
            found = self._admin.offsets(dict.fromkeys(self._partitions, LATEST), ANSWER_S)
        except KafkaRequestError:
            self._partitions = []
            return None
        end_offsets: Offsets = {}
        for (topic, number), offset in found.items():
            end_offsets.setdefault(topic, {})[number] = offset
        return end_offsets

    def _listed(self) -> list[Partition]:
        counts = self._admin.partition_counts(within_s=ANSWER_S)
        known = self._topics & counts.keys()
        return [Partition(topic, number) for topic in known for number in range(counts[topic])]
