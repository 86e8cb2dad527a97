"""Chooses the partitions of a producer's records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.kafka.values import BY_KEY, Partition
from tests.simulation.kafka.errors import RefusedError
from tests.simulation.kafka.partitioner import partition_of

if TYPE_CHECKING:
    from services.runtime.kafka.values import Output
    from tests.simulation.kafka.broker import Broker

LARGEST = 1_000_000
"""The size of a key and a value that a client takes."""
REFRESH_S = 300.0
"""The age at which a client reads the number of partitions of a topic again: until then it uses no new ones."""


class Placement:
    """The numbers of partitions that a producer knows."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counts: dict[str, tuple[float, int]] = {}

    def require_size(self, output: Output) -> None:
        """Raise RefusedError for a record that the client does not take."""
        if len(output.key or b"") + len(output.value or b"") > LARGEST:
            raise RefusedError("MSG_SIZE_TOO_LARGE")

    def partition(self, output: Output) -> Partition:
        """Return the partition of a record. Raises RefusedError."""
        count = self._count(output.topic)
        if output.partition != BY_KEY:
            number = output.partition
        elif output.key is None:
            number = self._broker.random.randrange(count)
        else:
            number = partition_of(output.key, count)
        if number >= count:
            raise RefusedError("_UNKNOWN_PARTITION")
        return Partition(output.topic, number)

    def _count(self, topic: str) -> int:
        now = self._broker.now
        if topic not in self._broker.topics.by_name:
            raise RefusedError("_UNKNOWN_TOPIC")
        read_at, count = self._counts.get(topic, (float("-inf"), 0))
        if now - read_at >= REFRESH_S:
            count = len(self._broker.topics.topic(topic).logs)
            self._counts[topic] = now, count
        return count
