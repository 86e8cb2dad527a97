"""How many partitions the topics of the named states have, which the brokers alone know."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.query.errors import NoBrokerError, NoTopicError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.named import NamedState

ANSWER_S = 2.0
PATIENCE_S = 60.0


def sized(states: Mapping[str, NamedState], client: Mapping[str, str]) -> dict[str, NamedState]:
    """The states with as many partitions as their topics have; waits for a broker. Raises NoBrokerError, NoTopicError.

    Whoever makes the topics may have chosen another number than the application says.
    """
    there = _partitions(client, time.monotonic() + PATIENCE_S)
    for state in states.values():
        if state.topic not in there:
            raise NoTopicError(state.topic, client["bootstrap.servers"])
    return {name: replace(state, partitions=there[state.topic]) for name, state in states.items()}


def _partitions(client: Mapping[str, str], deadline: float) -> dict[str, int]:
    admin = AdminClient({**client, "log_level": 0, "reconnect.backoff.max.ms": 1000})
    while True:
        try:
            listed = admin.list_topics(timeout=ANSWER_S).topics
        except KafkaException as error:
            if time.monotonic() >= deadline:
                raise NoBrokerError(client["bootstrap.servers"], error.args[0].str()) from error
        else:
            return {name: len(topic.partitions) for name, topic in listed.items()}
