"""Watches the offsets that the enrichment workers of `upgrade.py` commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.compatibility.upgraded import PARTITIONS, PREFIX

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

TOPICS = {"couriers-enrichment": "snapshots", "couriers-speeding-webhook": "speeding"}
"""Of each consumer group."""
EVERY_S, ANSWER_S = 0.2, 2.0
"""Between two looks at the offsets (a worker commits as often), and for an answer."""
Place = tuple[str, int]
"""A group and a partition of its topic."""


class Commits:
    """The time of the newest commit of each partition, as `record` observes it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._places = {(group, number) for group in TOPICS for number in range(PARTITIONS)}
        self._offsets: dict[Place, int] = {}
        self._changed: dict[Place, float] = {}

    def record(self, offsets: Mapping[Place, int]) -> None:
        """Note the committed offsets of now."""
        for place, offset in offsets.items():
            if self._offsets.get(place) != offset:
                self._offsets[place], self._changed[place] = offset, self._clock()

    def oldest(self) -> float:
        """Return the time since which no partition has committed: a call that ended before it is committed."""
        return min(self._changed.get(place, 0.0) for place in self._places)

    def have_all_changed(self, since: float) -> bool:
        """Return whether each partition has a commit that is newer than a time."""
        return self.oldest() > since


def watch(kafka: str, commits: Commits, is_over: threading.Event) -> None:
    """Record committed offsets until it is over."""
    options = {"bootstrap.servers": kafka, "enable.auto.commit": False, "log_level": 0}
    consumers = {group: Consumer(options | {"group.id": group}) for group in TOPICS}
    while not is_over.wait(EVERY_S):
        for group, consumer in consumers.items():
            places = [TopicPartition(f"{PREFIX}{TOPICS[group]}", number) for number in range(PARTITIONS)]
            try:
                found = consumer.committed(places, ANSWER_S)
            except KafkaException:
                continue  # without a broker
            commits.record({(group, one.partition): one.offset for one in found if one.error is None})
