"""A reader that follows the rule, and keeps what it takes to see whether the job follows its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contracts.wire import Snapshot, decode_snapshot
from tests.e2e.published import Published
from tests.spark_app.running import PATIENCE_S, until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    WindowKey = tuple[str, datetime]

PARTITIONS = 4
WAIT_S = 0.02
AT_ONCE = 5_000


class Reader:
    """Reads all snapshots from the beginning, and goes on through whatever happens to the broker.

    The topic may have fewer than these `partitions`, and get more.
    """

    def __init__(self, kafka: str, topic: str, partitions: int = PARTITIONS) -> None:
        settings = {"bootstrap.servers": kafka, "group.id": "reader", "topic.metadata.refresh.interval.ms": 1000}
        self._topic = topic
        self._consumer = Consumer(settings | {"log_level": 0})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self.latest: dict[WindowKey, Snapshot] = {}
        """The newest snapshot of each window: one that is not newer, by epoch and version, is dropped."""
        self._changed: set[WindowKey] = set()
        self.published = Published()
        self.seen = 0

    def read(self) -> int:
        """Read the new snapshots; return how many were read so far."""
        try:
            first = self._consumer.poll(WAIT_S)
            messages = [first, *self._consumer.consume(AT_ONCE, 0)]
        except KafkaException:
            return self.seen
        for message in messages:
            if message is not None and message.error() is None:
                self._take(decode_snapshot(message.value() or b""))
        return self.seen

    def changes(self) -> set[WindowKey]:
        """Read on. Return the windows of which there is a newer snapshot than at the last call."""
        self.read()
        changed, self._changed = self._changed, set()
        return changed

    def read_to_end(self) -> None:
        """Read all snapshots that the topic holds now."""
        there = self._consumer.list_topics(self._topic, PATIENCE_S).topics[self._topic].partitions
        ends = {
            number: self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), PATIENCE_S)[1]
            for number in there
        }

        def is_at_end() -> bool:
            self.read()
            positions = [position for position in self._positions(there) if ends[position.partition]]
            return all(position.offset >= ends[position.partition] for position in positions)

        until(is_at_end, f"the end of {self._topic}", pause_s=0)

    def _positions(self, numbers: Iterable[int]) -> list[TopicPartition]:
        return self._consumer.position([TopicPartition(self._topic, number) for number in numbers])

    def _take(self, snapshot: Snapshot) -> None:
        self.seen += 1
        self.published.add(snapshot.window, snapshot.version)
        known = self.latest.get(snapshot.window)
        if known is None or snapshot.order > known.order:
            self.latest[snapshot.window] = snapshot
            self._changed.add(snapshot.window)

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
