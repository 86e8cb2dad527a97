"""How many partitions the topics of the named states have, which the brokers alone know."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.query.errors import NoBrokerError, NoTopicError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from contracts.model.named_state import NamedState

ANSWER_S = 2.0
PATIENCE_S = 60.0
MADE_S = 3.0
"""How long a topic that a broker does not list may take to come: another broker may have made it just now."""
AGAIN_S = 0.2


def sized(
    states: Mapping[str, NamedState], client: Mapping[str, str], stopping: Callable[[], bool] = lambda: False
) -> dict[str, NamedState] | None:
    """The states with as many partitions as their topics have; waits for a broker, and gives None if it shall stop.

    Whoever makes the topics may have chosen another number than the application says. Raises NoBrokerError,
    NoTopicError.
    """
    there = _partitions({state.topic for state in states.values()}, client, stopping)
    if there is None:
        return None
    for state in states.values():
        if not there.get(state.topic):
            raise NoTopicError(state.topic, client["bootstrap.servers"])
    return {name: replace(state, partitions=there[state.topic]) for name, state in states.items()}


def _partitions(
    topics: Collection[str], client: Mapping[str, str], stopping: Callable[[], bool]
) -> dict[str, int] | None:
    admin = AdminClient({**client, "log_level": 0, "reconnect.backoff.max.ms": 1000})
    deadline, listed_at = time.monotonic() + PATIENCE_S, float("inf")
    while not stopping():
        try:
            listed = admin.list_topics(timeout=ANSWER_S).topics
        except KafkaException as error:
            if time.monotonic() >= deadline:
                raise NoBrokerError(client["bootstrap.servers"], error.args[0].str()) from error
        else:
            found = {name: len(topic.partitions) for name, topic in listed.items()}
            listed_at = min(listed_at, time.monotonic())
            if time.monotonic() >= _awaited(topics, found, listed_at, deadline):
                return found
            time.sleep(AGAIN_S)
    return None


def _awaited(topics: Collection[str], found: Mapping[str, int], listed_at: float, deadline: float) -> float:
    """Until when it is looked again: for topics that are being made, or may be soon."""
    if any(found.get(topic) == 0 for topic in topics):
        return deadline
    return listed_at if all(topic in found for topic in topics) else min(deadline, listed_at + MADE_S)
