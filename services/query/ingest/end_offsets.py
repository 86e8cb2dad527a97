"""Requests the end offsets of partitions from the brokers.

With a consumer that joins no group: an admin client whose broker stops while it waits never responds again
(librdkafka 2.16).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from services.runtime.kafka.options import create_consumer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from services.query.store import StatePartition

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 5.0
LATEST = -1
"""In place of a timestamp: the end."""


class EndOffsetReader:
    """Blocks while it waits for the brokers. `topics` gives the topic of each state."""

    def __init__(self, client: Mapping[str, str], group: str, topics: Mapping[str, str]) -> None:
        self._consumer = create_consumer(client, "query-end-offsets", group)
        self._topics = topics

    def read(self, partitions: Collection[StatePartition]) -> dict[StatePartition, int]:
        """Return the end offset of each partition; without those that the brokers do not return in time."""
        requested = {(self._topics[partition.state], partition.number): partition for partition in partitions}
        times = [TopicPartition(topic, number, LATEST) for topic, number in requested]
        try:
            found = self._consumer.offsets_for_times(times, timeout=RESPONSE_TIMEOUT_S) if times else []
        except KafkaException as error:
            log.warning("end offsets are unknown", extra={"facts": {"detail": str(error)}})
            return {}
        return {
            requested[one.topic, one.partition]: one.offset for one in found if one.error is None and one.offset >= 0
        }
