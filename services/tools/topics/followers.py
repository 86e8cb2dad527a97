"""Waits for consumer groups, and moves them to the end of a topic once they have no members.

The next job publishes each window again, in the partition that its key has by the new number. A worker that still read
a window in the former partition would request what another worker has requested.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from services.runtime.errors import KafkaRequestError, NoBrokerError
from services.runtime.kafka.values import LATEST, GroupOffset, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import Self

    from services.runtime.kafka.interfaces import Admin

LEADERS_S = 30.0
"""The wait for the leaders of partitions that were added a moment ago."""
LOOK_S = 0.5


def await_end(admin: Admin, address: str, topic: str, groups: Collection[str], report: Callable[[str], object]) -> None:
    """Wait until the workers of each group have read the topic to its end. Raises NoBrokerError."""
    for name in groups:
        problem = f"waits until the workers of the group {name} have read {topic}: they must run until then"
        with ConsumerGroup.open(admin, address, topic, name) as group:
            _await(group.has_read_all, partial(report, problem))


def move_to_end(
    admin: Admin, address: str, topic: str, groups: Collection[str], report: Callable[[str], object]
) -> None:
    """Wait until each group has no members, and move it to the end of the topic. Raises NoBrokerError."""
    for name in groups:
        with ConsumerGroup.open(admin, address, topic, name) as group:
            _await(group.has_moved, partial(report, f"waits until the workers of the group {name} have stopped"))


def _await(condition: Callable[[], bool], report: Callable[[], object]) -> None:
    """Wait for a condition; report once if it is not true at first."""
    if condition():
        return
    report()
    while not condition():
        time.sleep(LOOK_S)


class ConsumerGroup:
    """A consumer group on a topic to which nothing is written."""

    def __init__(self, admin: Admin, topic: str, name: str) -> None:
        self._admin = admin
        self._topic = topic
        self._name = name

    @classmethod
    @contextmanager
    def open(cls, admin: Admin, address: str, topic: str, name: str) -> Iterator[Self]:
        """Connect to the group for a while. Raises NoBrokerError, which names the address."""
        try:
            yield cls(admin, topic, name)
        except KafkaRequestError as error:
            raise NoBrokerError(address, error.detail) from error
        finally:
            admin.close()

    def has_moved(self) -> bool:
        """Commit the end of each partition; return False if the group has members. Raises KafkaRequestError."""
        return self._admin.commit(self._name, {partition: GroupOffset(end) for partition, end in self._ends().items()})

    def has_read_all(self) -> bool:
        """Return whether the end of each partition is committed; also of a group that has no offsets, and no workers.

        Raises KafkaRequestError.
        """
        ends = self._ends()
        committed = {partition: stored.offset for partition, stored in self._admin.committed(self._name, ends).items()}
        has_none = max(committed.values()) < 0
        return has_none or all(max(committed[partition], 0) >= end for partition, end in ends.items())

    def _ends(self) -> Mapping[Partition, int]:
        count = self._admin.partition_counts()[self._topic]
        return self._admin.offsets({Partition(self._topic, number): LATEST for number in range(count)}, LEADERS_S)
