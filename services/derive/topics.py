"""The topics that a derive worker writes, and the numbers of their partitions."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.alerts.errors import KafkaFailedError, UnequalPartitionsError
from services.derive.errors import NoTopicError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from confluent_kafka import Consumer
    from confluent_kafka.admin import TopicMetadata

    from contracts import Application

log = logging.getLogger(__name__)

LISTED_S = 1.0
ATTEMPTS = 30
LOOKS, AGAIN_S = 10, 0.3
"""The number of checks for a missing topic, and the pause between them."""


def names(application: Application) -> Iterator[str]:
    """The topics of the derived states, of the alerts, and of the tables of their rules."""
    topics = application.topics
    yield from (topics.derived(one) for one in application.derived_names)
    yield from (topics.table(one) for one in application.tables if application.reads_tables)


def check_partitions(application: Application, partitions: Mapping[str, int]) -> None:
    """Require that alerts are in the partitions of their snapshots. Raises UnequalPartitionsError."""
    wanted = partitions[application.topics.snapshots]
    for one in application.alerts:
        if (found := partitions[topic := application.topics.derived(one.name)]) != wanted:
            raise UnequalPartitionsError(topic, found, wanted)


def partition_counts(
    consumer: Consumer, topics: Sequence[str], kafka: str, is_stopping: Callable[[], bool]
) -> dict[str, int]:
    """Return how many each topic has; none if it is to stop. Raises NoTopicError, KafkaFailedError.

    A topic that was made just now is waited for: a broker may not know of it yet.
    """
    known = _known(consumer, is_stopping)
    looks_left = LOOKS
    while (missing := [one for one in topics if not known.get(one)]) and not is_stopping():
        looks_left -= 1
        if not looks_left:
            raise NoTopicError(missing[0], kafka)
        time.sleep(AGAIN_S)
        known = _known(consumer, is_stopping)
    return {} if is_stopping() else {topic: known[topic] for topic in topics}


def _known(consumer: Consumer, is_stopping: Callable[[], bool]) -> dict[str, int]:
    """Return how many partitions each topic has that a broker knows, none while it is made. Waits for a broker."""
    attempts_left = ATTEMPTS
    while not is_stopping():
        attempts_left -= 1
        try:
            listed: dict[str, TopicMetadata] = consumer.list_topics(timeout=LISTED_S).topics
        except KafkaException as error:
            if not attempts_left:
                code, detail = error.args[0].name(), error.args[0].str()
                raise KafkaFailedError("no broker answers", code, detail) from error
        else:
            return {name: len(topic.partitions) for name, topic in listed.items()}
    return {}
