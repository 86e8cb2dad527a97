"""The topics of the model broker: their identities, settings and partitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.simulation.kafka.errors import RefusedError
from tests.simulation.kafka.log import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.runtime.kafka.values import NewTopic, Partition

MISSING = "UNKNOWN_TOPIC_OR_PART"
FOREVER = -1
NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
REPLICAS = 1
"""The brokers of the cluster."""
DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
}
"""The settings of a topic, as a broker of Kafka 4.1 has them. The model knows no others."""
CHOICES = {
    "cleanup.policy": {"delete", "compact", "compact,delete", "delete,compact"},
    "message.timestamp.type": {"CreateTime", "LogAppendTime"},
}


class Topic:
    """A topic."""

    def __init__(self, topic_id: str, partitions: int, config: Mapping[str, str]) -> None:
        self.id = topic_id
        self.config = {**DEFAULTS, **config}
        self.logs = [PartitionLog() for _ in range(partitions)]

    @property
    def is_compacted(self) -> bool:
        """Whether each record needs a key."""
        return "compact" in self.config["cleanup.policy"]

    @property
    def is_stamped_by_broker(self) -> bool:
        """Whether records have the time at which the broker appends them."""
        return self.config["message.timestamp.type"] == "LogAppendTime"

    def accepted_time(self, key: bytes | None, timestamp_ms: int, now_ms: int) -> int:
        """Return the timestamp with which the log takes a record of this time, 0 for now. Raises RefusedError."""
        if self.is_compacted and key is None:
            raise RefusedError("INVALID_RECORD")
        if self.is_stamped_by_broker or timestamp_ms == 0:
            return now_ms
        if timestamp_ms > now_ms + int(self.config["message.timestamp.after.max.ms"]):
            raise RefusedError("INVALID_TIMESTAMP")
        return timestamp_ms


class Topics:
    """The topics by name. Each raises RefusedError, with the code of a real broker."""

    def __init__(self) -> None:
        self.by_name: dict[str, Topic] = {}
        self._created = 0

    def topic(self, name: str) -> Topic:
        """Return a topic."""
        if name not in self.by_name:
            raise RefusedError(MISSING)
        return self.by_name[name]

    def log(self, partition: Partition, missing: str = MISSING) -> PartitionLog:
        """Return the log of a partition. `missing` is the code of the client that asks."""
        topic, number = self.by_name.get(partition[0]), partition[1]
        if topic is None or not 0 <= number < len(topic.logs):
            raise RefusedError(missing)
        return topic.logs[number]

    def has(self, partition: Partition) -> bool:
        """Return whether a partition exists."""
        topic = self.by_name.get(partition[0])
        return topic is not None and 0 <= partition[1] < len(topic.logs)

    def create(self, new: NewTopic) -> None:
        """Create a topic, with an id that none had before."""
        if new.name in self.by_name:
            raise RefusedError("TOPIC_ALREADY_EXISTS")
        if not NAME.fullmatch(new.name) or any(_collides(new.name, other) for other in self.by_name):
            raise RefusedError("TOPIC_EXCEPTION")
        _require_valid(new.config)
        if new.partitions < 1:
            raise RefusedError("INVALID_PARTITIONS")
        if not 0 < new.replicas <= REPLICAS:
            raise RefusedError("INVALID_REPLICATION_FACTOR")
        self._created += 1
        self.by_name[new.name] = Topic(f"topic-{self._created}", new.partitions, new.config)

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions until a topic has this number."""
        topic = self.topic(name)
        if partitions <= len(topic.logs):
            raise RefusedError("INVALID_PARTITIONS")
        topic.logs += [PartitionLog() for _ in range(partitions - len(topic.logs))]

    def alter(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        topic = self.topic(name)
        _require_valid(config)
        topic.config.update(config)

    def expire(self, now_ms: int) -> None:
        """Delete records that are older than the retention of their topic."""
        for topic in self.by_name.values():
            retention_ms = int(topic.config["retention.ms"])
            if "delete" in topic.config["cleanup.policy"] and retention_ms != FOREVER:
                for log in topic.logs:
                    log.expire(now_ms - retention_ms)

    def compact(self, now_ms: int) -> None:
        """Compact the logs of compacted topics, but for the last entry of each: it is in the active segment."""
        for topic in self.by_name.values():
            if topic.is_compacted:
                for log in topic.logs:
                    log.compact(log.end - 1, now_ms - int(topic.config["delete.retention.ms"]))


def _collides(name: str, other: str) -> bool:
    """Return whether the metrics of two topics would have one name."""
    return name.replace(".", "_") == other.replace(".", "_")


def _require_valid(config: Mapping[str, str]) -> None:
    for name, value in config.items():
        if name not in DEFAULTS or value not in CHOICES.get(name, {value}):
            raise RefusedError("INVALID_CONFIG")
