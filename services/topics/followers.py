"""Waits for consumer groups, and moves them to the end of a topic once they have no members.

The next job publishes each window again, in the partition that its key has by the new number. A worker that still read
a window in the former partition would request what another worker has requested.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from services.runtime.errors import NoBrokerError
from services.runtime.kafka.options import create_consumer
from services.topics.watermarks import watermarks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Self

    from contracts.settings import KafkaSettings

ANSWER_S = 10.0
LOOK_S = 0.5


def await_end(settings: KafkaSettings, topic: str, groups: Collection[str], report: Callable[[str], object]) -> None:
    """Wait until the workers of each group have read the topic to its end. Raises NoBrokerError."""
    for name in groups:
        problem = f"waits until the workers of the group {name} have read {topic}: they must run until then"
        with ConsumerGroup.open(settings, topic, name) as group:
            _await(group.has_read_all, partial(report, problem))


def move_to_end(settings: KafkaSettings, topic: str, groups: Collection[str], report: Callable[[str], object]) -> None:
    """Wait until each group has no members, and move it to the end of the topic. Raises NoBrokerError."""
    for name in groups:
        with ConsumerGroup.open(settings, topic, name) as group:
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

    def __init__(self, settings: KafkaSettings, topic: str, name: str) -> None:
        self._topic = topic
        self._consumer = create_consumer(settings.client(), "topics", name)

    @classmethod
    @contextmanager
    def open(cls, settings: KafkaSettings, topic: str, name: str) -> Iterator[Self]:
        """Connect to the group for a while. Raises NoBrokerError."""
        group = cls(settings, topic, name)
        try:
            yield group
        except KafkaException as error:
            raise NoBrokerError(settings.kafka, error.args[0].str()) from error
        finally:
            group.close()

    def has_moved(self) -> bool:
        """Commit the end of each partition; return False if the group has members. Raises KafkaException.

        The broker accepts commits of a client that is no member only while there are no members.
        """
        end_offsets = self._end_offsets()
        try:
            committed = self._consumer.commit(offsets=end_offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"):
                return False
            raise
        return not any(one.error for one in committed or ())

    def has_read_all(self) -> bool:
        """Return whether the end of each partition is committed; also of a group that has no offsets, and no workers.

        Raises KafkaException.
        """
        end_offsets = self._end_offsets()
        committed = {one.partition: one.offset for one in self._consumer.committed(end_offsets, ANSWER_S)}
        return max(committed.values()) < 0 or all(max(committed[one.partition], 0) >= one.offset for one in end_offsets)

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _end_offsets(self) -> list[TopicPartition]:
        found = watermarks(self._consumer, self._topic)
        return [TopicPartition(self._topic, number, end) for number, (_, end) in found.items()]
