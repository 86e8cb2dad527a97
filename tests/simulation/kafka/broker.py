"""A Kafka broker in memory. Its time and its random numbers come from the simulation; it has no threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.kafka.values import Partition
from tests.simulation.kafka.groups import Groups
from tests.simulation.kafka.topics import Topics
from tests.simulation.kafka.transactions import Transactions

if TYPE_CHECKING:
    import random
    from datetime import datetime

    from services.runtime.kafka.values import Output
    from tests.simulation.kafka.network import Time


class Broker:
    """A cluster of one broker. Its clock shows `start` at the time 0 of the simulation."""

    def __init__(self, time: Time, start: datetime, random: random.Random) -> None:
        self.random = random
        self.topics = Topics()
        self.groups = Groups(self.topics)
        self.transactions = Transactions(self.topics, self.groups)
        self._time = time
        self._start_ms = round(start.timestamp() * 1000)

    @property
    def now(self) -> float:
        """The time of the simulation in seconds."""
        return self._time.time()

    @property
    def now_ms(self) -> int:
        """The time in milliseconds since 1970."""
        return self._start_ms + round(self.now * 1000)

    def append(self, partition: Partition, output: Output, transaction: int | None = None) -> int:
        """Append a record to a partition, and return its offset. Raises RefusedError."""
        log = self.topics.log(partition)
        topic = self.topics.topic(partition.topic)
        timestamp_ms = topic.accepted_time(output.key, output.timestamp_ms, self.now_ms)
        headers = tuple((name, value.encode() if isinstance(value, str) else value) for name, value in output.headers)
        return log.append(timestamp_ms, output.key, output.value, headers, transaction)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and the offsets that groups have committed for it."""
        topic = self.topics.by_name.pop(name)
        self.groups.forget([Partition(name, number) for number in range(len(topic.logs))])

    def resume(self) -> None:
        """Begin the sessions of all members anew, as a coordinator does that is back."""
        self.groups.resume(self.now)

    def expire(self) -> None:
        """Delete records that are older than the retention of their topic: all of them, not whole segments."""
        self.topics.expire(self.now_ms)

    def compact(self) -> None:
        """Compact the logs of compacted topics, but for the last entry of each: it is in the active segment."""
        self.topics.compact(self.now_ms)
