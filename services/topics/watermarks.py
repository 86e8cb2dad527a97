"""Reads the first and the end offset of each partition of a topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer

ANSWER_S = 2.0
PAUSE_S = 0.1
LEADERS_S = 30.0


def watermarks(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """Return the first and the end offset of each partition. Raises KafkaException.

    It waits for the leaders of partitions that were added a moment ago.
    """
    deadline = time.monotonic() + LEADERS_S
    while True:
        try:
            numbers = consumer.list_topics(topic, ANSWER_S).topics[topic].partitions
            return {one: consumer.get_watermark_offsets(TopicPartition(topic, one), ANSWER_S) for one in numbers}
        except KafkaException:
            if time.monotonic() >= deadline:
                raise
        time.sleep(PAUSE_S)
