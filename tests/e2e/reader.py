"""A reader that follows the rule, and keeps what it takes to see whether the job follows its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contracts.wire import Snapshot, decode_snapshot
from tests.e2e.published import Published

if TYPE_CHECKING:
    from datetime import datetime

PARTITIONS = 4


class Reader:
    """Reads all snapshots from the beginning, and goes on through whatever happens to the broker."""

    def __init__(self, kafka: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": kafka, "group.id": "reader", "log_level": 0})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        self.latest: dict[tuple[str, datetime], Snapshot] = {}
        """The newest snapshot of each window: one of a version that is not greater is dropped."""
        self.published = Published()
        self.seen = 0

    def read(self) -> int:
        """Read the new snapshots; return how many were read so far."""
        try:
            messages = self._consumer.consume(5_000, 0.2)
        except KafkaException:
            return self.seen
        for message in messages:
            if message.error() is None:
                self._take(decode_snapshot(message.value() or b""))
        return self.seen

    def _take(self, snapshot: Snapshot) -> None:
        self.seen += 1
        self.published.add(snapshot.window, snapshot.version)
        known = self.latest.get(snapshot.window)
        if known is None or snapshot.version > known.version:
            self.latest[snapshot.window] = snapshot

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
