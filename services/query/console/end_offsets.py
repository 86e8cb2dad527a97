"""Reads the end offsets of topics, by a consumer that joins no group and commits nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_END, KafkaException, TopicPartition

from services.runtime.kafka.options import create_consumer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ANSWER_S = 2.0
GROUP = "stateloop-console"
"""Required by the client; never joined."""
Offsets = dict[str, dict[int, int]]


class EndOffsets:
    """Reads the end offset of each partition of these topics. Its methods block."""

    def __init__(self, client: Mapping[str, str], topics: Collection[str]) -> None:
        self._consumer = create_consumer(client, "console-end-offsets", GROUP)
        self._topics = frozenset(topics)
        self._requested: list[TopicPartition] = []
        self._lock = threading.Lock()

    def read(self) -> Offsets | None:
        """Return the end offsets of the existing topics; None while the broker does not answer."""
        with self._lock:
            try:
                found = self._found()
            except KafkaException:
                self._requested = []
                return None
        end_offsets: Offsets = {}
        for one in found:
            if one.error is None and one.offset >= 0:
                end_offsets.setdefault(one.topic, {})[one.partition] = one.offset
        return end_offsets

    def close(self) -> None:
        """Close the consumer after the last read."""
        with self._lock:
            self._consumer.close()

    def _found(self) -> list[TopicPartition]:
        """Look up timestamp -1, the end: one request covers all partitions of a broker."""
        self._requested = self._requested if self._complete() else self._partitions()
        return self._consumer.offsets_for_times(self._requested, timeout=ANSWER_S) if self._requested else []

    def _complete(self) -> bool:
        return {one.topic for one in self._requested} == self._topics

    def _partitions(self) -> list[TopicPartition]:
        known = self._consumer.list_topics(timeout=ANSWER_S).topics
        there = [known[topic] for topic in self._topics if topic in known and known[topic].error is None]
        return [TopicPartition(one.topic, number, OFFSET_END) for one in there for number in one.partitions]
