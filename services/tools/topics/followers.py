"""Waits for consumer groups, and moves them to the end of a topic once they have no members.

The next job publishes each window again, in the partition that its key has by the new number. A worker that still read
a window in the former partition would request what another worker has requested.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import LATEST, BoundedRange, GroupOffset, Partition
from services.tools.topics.errors import answered_at, refused
from services.tools.topics.rewrite import CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from services.runtime.kafka.interfaces import Admin, BlockingTopicReader, Kafka

LEADERS_S = 30.0
"""The wait for the leaders of partitions that were added a moment ago."""
LOOK_S = 0.5


@dataclass(frozen=True)
class Followers:
    """The consumer groups of a topic. `address` is that of the brokers, which errors name."""

    kafka: Kafka
    address: str
    topic: str
    groups: Collection[str]
    report: Callable[[str], object]
    sleep: Callable[[float], object]
    require_lease: Callable[[], object]
    """Raises an error if a job may run. It is called before each commit, after what is committed was read."""

    def await_end(self, used: Collection[str]) -> None:
        """Wait until the workers of each group have read the topic to its end.

        A group that has committed nothing, and has no members, counts as done unless it is one of the `used` ones: its
        workers were killed before they committed. Raises NoBrokerError, and TopicRefusedError.
        """
        for name in self.groups:
            problem = f"waits until the workers of the group {name} have read {self.topic}: they must run until then"
            if name in used:
                problem += ". If derive workers have another group, name it with --derive-group"
            with self._opened(name) as group:
                self._await(partial(group.has_read_all, is_used=name in used), problem)

    def move_to_end(self) -> None:
        """Wait until each group has no members, and move it to the end of the topic. Raises NoBrokerError."""
        for name in self.groups:
            with self._opened(name) as group:
                self._await(group.try_to_move, f"waits until the workers of the group {name} have stopped")

    @contextmanager
    def _opened(self, name: str) -> Iterator[ConsumerGroup]:
        """Connect to a group for a while. Raises NoBrokerError, which names the address, and TopicRefusedError."""
        admin, reader = self.kafka.admin(CLIENT), self.kafka.blocking_reader(CLIENT)
        try:
            with answered_at(self.address):
                yield ConsumerGroup(admin, reader, self.topic, name, self.require_lease)
        except TopicReadError as error:
            raise refused(self.topic, self.address, error) from error
        finally:
            reader.close()
            admin.close()

    def _await(self, condition: Callable[[], bool], problem: str) -> None:
        """Wait for a condition; report once if it is not true at first."""
        if condition():
            return
        self.report(problem)
        while not condition():
            self.sleep(LOOK_S)


class ConsumerGroup:
    """A consumer group on a topic to which nothing is written, as long as `require_lease` raises nothing."""

    def __init__(
        self,
        admin: Admin,
        reader: BlockingTopicReader,
        topic: str,
        name: str,
        require_lease: Callable[[], object],
    ) -> None:
        self._admin = admin
        self._reader = reader
        self._topic = topic
        self._name = name
        self._require_lease = require_lease
        self._without_records: set[tuple[Partition, BoundedRange]] = set()

    def try_to_move(self) -> bool:
        """Commit the end of each partition, or the beginning if the group has read nothing.

        Return False, and commit nothing, if it has members. Raises KafkaRequestError.
        """
        ends = topic_ends(self._admin, self._topic)
        return self._commit(ends) if any(self._positions(ends).values()) else self._try_to_begin(ends)

    def has_read_all(self, *, is_used: bool) -> bool:
        """Return whether no partition has a record behind the committed offset.

        A worker commits the offset behind its last record, and the end is behind the marker of a transaction. A group
        that is not used, and has no members, is left at the beginning: it counts as done. Raises KafkaRequestError and
        TopicReadError.
        """
        ends = topic_ends(self._admin, self._topic)
        positions = self._positions(ends)
        if not any(self._has_records(partition, positions[partition], end) for partition, end in ends.items()):
            return True
        return not is_used and not any(positions.values()) and self._try_to_begin(ends)

    def _has_records(self, partition: Partition, start: int, end: int) -> bool:
        """Return whether these offsets have a record that a reader receives. It reads to the first one."""
        offsets = BoundedRange(start, end)
        if start >= end or (partition, offsets) in self._without_records:
            return False
        has_records = any(self._reader.read({partition: offsets}))
        self._reader.stop()
        if not has_records:
            self._without_records.add((partition, offsets))
        return has_records

    def _try_to_begin(self, partitions: Collection[Partition]) -> bool:
        """Commit the beginning for a group that has read nothing; return False if it has members."""
        return self._commit(dict.fromkeys(partitions, 0))

    def _commit(self, positions: Mapping[Partition, int]) -> bool:
        self._require_lease()
        return self._admin.commit(self._name, {partition: GroupOffset(at) for partition, at in positions.items()})

    def _positions(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Return the committed offsets, 0 where there is none."""
        committed = self._admin.committed(self._name, partitions)
        return {partition: max(stored.offset, 0) for partition, stored in committed.items()}


def topic_ends(admin: Admin, topic: str) -> Mapping[Partition, int]:
    """Return the end offset of each partition. Raises KafkaRequestError."""
    count = admin.partition_counts()[topic]
    return admin.offsets({Partition(topic, number): LATEST for number in range(count)}, LEADERS_S)
