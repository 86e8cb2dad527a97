"""A reader that follows the rule: it drops a version that it has passed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contracts.wire import Snapshot, decode_snapshot

if TYPE_CHECKING:
    from datetime import datetime

    from tests.e2e.launched import Launched

PARTITIONS = 4


class Reader:
    """Reads all snapshots from the beginning, and goes on through whatever happens to the broker."""

    def __init__(self, launched: Launched, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": launched.kafka, "group.id": "reader", "log_level": 0})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        self.latest: dict[tuple[str, datetime], Snapshot] = {}
        self.seen = 0
        self.passed = 0
        self.by_device: Counter[str] = Counter()

    def read(self) -> int:
        """Take what is there; gives how many snapshots were seen so far."""
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
        known = self.latest.get(snapshot.life)
        if known is not None and snapshot.version <= known.version:
            self.passed += 1
            return
        self.latest[snapshot.life] = snapshot

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
