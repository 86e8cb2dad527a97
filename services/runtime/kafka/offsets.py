"""Looks offsets up with a consumer: an admin client whose broker stops while it waits may never answer again."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from services.runtime.kafka.errors import raise_errors
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Consumer
    from confluent_kafka.admin import ClusterMetadata

TRY_S = 5.0
PAUSE_S = 0.1
NO_LEADER = -1
"""The number of the broker that leads a partition without a leader."""


def lookup(consumer: Consumer, at: Mapping[Partition, int], within_s: float) -> dict[Partition, int]:
    """Return the first offset of each partition whose record has this time, in milliseconds, or a later one.

    It is LATEST where there is none. EARLIEST and LATEST, as times, give the first and the end offset: for a reader of
    committed records, the offset of the first open transaction. It waits for the leaders of new partitions, within the
    time in all. One request covers all partitions of a broker. Raises KafkaException.
    """
    deadline = time.monotonic() + within_s

    def left_s() -> float:
        return min(TRY_S, max(0.0, deadline - time.monotonic()))

    while at:
        try:
            return _first_offsets(consumer, at, left_s())
        except KafkaException as error:
            if left_s() <= PAUSE_S or "AUTHORIZATION" in error.args[0].name():
                raise
        time.sleep(PAUSE_S)
        with suppress(KafkaException):
            consumer.list_topics(timeout=left_s())  # the client knows no partition that is newer than its last list
    return {}


def lookup_available(consumer: Consumer, at: Mapping[Partition, int], within_s: float) -> dict[Partition, int]:
    """Return the same, but of the partitions whose leader answers within the time. Each leader has a request.

    Raises KafkaException if partitions have leaders, and none answers.
    """
    topics = _cluster(consumer, within_s).topics
    leaders: dict[int, dict[Partition, int]] = defaultdict(dict)
    for partition, place in at.items():
        if (topic := topics.get(partition.topic)) and (listed := topic.partitions.get(partition.number)):
            leaders[listed.leader][partition] = place
    leaders.pop(NO_LEADER, None)
    found: dict[Partition, int] = {}
    failures = []
    for places in leaders.values():
        try:
            found |= _first_offsets(consumer, places, within_s)
        except KafkaException as error:
            failures.append(error)
    if failures and not found:
        raise failures[0]
    return found


def _cluster(consumer: Consumer, within_s: float) -> ClusterMetadata:
    """Return all topics. The client asks any broker: if that one is frozen, another one may answer a second request."""
    try:
        cluster: ClusterMetadata = consumer.list_topics(timeout=within_s / 2)
    except KafkaException:
        cluster = consumer.list_topics(timeout=within_s / 2)
    return cluster


def _first_offsets(consumer: Consumer, at: Mapping[Partition, int], within_s: float) -> dict[Partition, int]:
    results = consumer.offsets_for_times([TopicPartition(*partition, time) for partition, time in at.items()], within_s)
    raise_errors(results)
    return {Partition(result.topic, result.partition): result.offset for result in results}
