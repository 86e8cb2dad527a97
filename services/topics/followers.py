"""Moves consumer groups to the end of a topic, once they have no members.

The next job publishes each window again, in the partition that its key has by the new number. A worker that still read
a window in the former partition would request what another worker has requested.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from services.runtime.kafka_clients import create_consumer
from services.topics.broker import watermarks
from services.topics.errors import NoBrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from contracts.settings import KafkaSettings

LOOK_S = 0.5


def move_to_end(settings: KafkaSettings, topic: str, groups: Collection[str], report: Callable[[str], object]) -> None:
    """Wait until each group has no members, and move it to the end of the topic. Raises NoBrokerError."""
    for name in groups:
        group = ConsumerGroup(settings, topic, name)
        try:
            if not group.has_moved():
                report(f"waits until the workers of the group {name} have stopped")
            while not group.has_moved():
                time.sleep(LOOK_S)
        except KafkaException as error:
            raise NoBrokerError(settings.kafka, error.args[0].str()) from error
        finally:
            group.close()


class ConsumerGroup:
    """A consumer group on a topic to which nothing is written."""

    def __init__(self, settings: KafkaSettings, topic: str, name: str) -> None:
        self._topic = topic
        self._consumer = create_consumer(settings.client(), "topics", name)

    def has_moved(self) -> bool:
        """Commit the end of each partition; return False if the group has members. Raises KafkaException.

        The broker accepts commits of a client that is no member only while there are no members.
        """
        ends = self._end_offsets()
        try:
            committed = self._consumer.commit(offsets=ends, asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"):
                return False
            raise
        return not any(one.error for one in committed or ())

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _end_offsets(self) -> list[TopicPartition]:
        found = watermarks(self._consumer, self._topic)
        return [TopicPartition(self._topic, number, end) for number, (_, end) in found.items()]
