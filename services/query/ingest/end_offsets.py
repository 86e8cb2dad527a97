"""Where partitions end now, asked of the brokers.

By a consumer that joins no group: an admin client that was asked while its broker went away never answered again
(librdkafka 2.16).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contracts.model.topics import READ_COMMITTED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from services.query.ingest.ingestion import Part

log = logging.getLogger(__name__)

ANSWER_S = 5.0
LATEST = -1
"""In place of a time: the end."""
QUIET = {"enable.auto.commit": False, "log_level": 0, "reconnect.backoff.max.ms": 500}


class Ends:
    """Blocks while it asks. `topics` by state."""

    def __init__(self, client: Mapping[str, str], group: str, topics: Mapping[str, str]) -> None:
        self._consumer = Consumer({**QUIET, **client, **READ_COMMITTED, "group.id": group})
        self._topics = topics

    def ask(self, parts: Collection[Part]) -> dict[Part, int]:
        """By partition; without those that the brokers do not tell within some seconds."""
        asked = {(self._topics[part.state], part.partition): part for part in parts}
        places = [TopicPartition(topic, number, LATEST) for topic, number in asked]
        try:
            told = self._consumer.offsets_for_times(places, timeout=ANSWER_S) if places else []
        except KafkaException as error:
            log.warning("the ends are not known", extra={"facts": {"detail": str(error)}})
            return {}
        return {asked[one.topic, one.partition]: one.offset for one in told if one.error is None and one.offset >= 0}
