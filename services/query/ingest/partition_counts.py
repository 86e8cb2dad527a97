"""The number of partitions of each state's topic: read from the brokers at the start, and watched from then on."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.query.errors import NoTopicError, PartitionsChangedError
from services.runtime.errors import NoBrokerError
from services.runtime.kafka.options import create_admin_client, create_consumer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from confluent_kafka import Consumer

    from contracts.model.named_state import NamedState

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 2.0
BROKER_TIMEOUT_S = 60.0
TOPIC_TIMEOUT_S = 3.0
"""The wait for a topic that a broker does not list: another broker may just have created it."""
RETRY_S = 0.2
CHECK_INTERVAL_S = 5.0
GROUP = "stateloop-query-partition-counts"
"""The client requires a group id; it joins no group."""


def with_partition_counts(
    states: Mapping[str, NamedState], client: Mapping[str, str], stopping: Callable[[], bool] = lambda: False
) -> dict[str, NamedState] | None:
    """Return the states with the number of partitions of their topics; None when the service stops.

    Topics may have been created with another number than the application declares. Waits for a broker. Raises
    NoBrokerError, NoTopicError.
    """
    found = _read_counts({state.topic for state in states.values()}, client, stopping)
    if found is None:
        return None
    for state in states.values():
        if not found.get(state.topic):
            raise NoTopicError(state.topic, client["bootstrap.servers"])
    return {
        name: replace(state, partitions=_in_use(found[state.topic], found.get(state.layout_topic or "", 0)))
        for name, state in states.items()
    }


async def watch_partition_counts(states: Iterable[NamedState], client: Mapping[str, str]) -> None:
    """Check the counts until cancelled. Raises PartitionsChangedError: keys are then in other partitions."""
    watched = list(states)
    consumer = create_consumer(client, "query-partition-counts", GROUP)
    thread = ThreadPoolExecutor(1, "partition-counts")
    try:
        while True:
            for state in watched:
                found = await asyncio.get_running_loop().run_in_executor(thread, _read_count, consumer, state)
                if found and found != state.partitions:
                    raise PartitionsChangedError(state.topic, state.partitions, found)
            await asyncio.sleep(CHECK_INTERVAL_S)
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _read_counts(
    topics: Collection[str], client: Mapping[str, str], stopping: Callable[[], bool]
) -> dict[str, int] | None:
    admin = create_admin_client(client, "query-partition-counts")
    deadline, listed_at = time.monotonic() + BROKER_TIMEOUT_S, float("inf")
    while not stopping():
        try:
            listed = admin.list_topics(timeout=RESPONSE_TIMEOUT_S).topics
        except KafkaException as error:
            if time.monotonic() >= deadline:
                raise NoBrokerError(client["bootstrap.servers"], error.args[0].str()) from error
        else:
            found = {name: len(topic.partitions) for name, topic in listed.items()}
            listed_at = min(listed_at, time.monotonic())
            if time.monotonic() >= _retry_until(topics, found, listed_at, deadline):
                return found
            time.sleep(RETRY_S)
    return None


def _retry_until(topics: Collection[str], found: Mapping[str, int], listed_at: float, deadline: float) -> float:
    """Return until when to list again: for topics that are being created, or may be soon."""
    if any(found.get(topic) == 0 for topic in topics):
        return deadline
    return listed_at if all(topic in found for topic in topics) else min(deadline, listed_at + TOPIC_TIMEOUT_S)


def _read_count(consumer: Consumer, state: NamedState) -> int:
    """Return the count; 0 without a response or without the topic, which the reader of the topic reports."""
    try:
        count = _listed(consumer, state.topic)
        return _in_use(count, _listed(consumer, state.layout_topic) if state.layout_topic else 0)
    except KafkaException as error:
        log.warning("the partition count is unknown", extra={"facts": {"topic": state.topic, "detail": str(error)}})
        return 0


def _listed(consumer: Consumer, topic: str) -> int:
    """Return the count; 0 without the topic. Raises KafkaException without a response."""
    found = consumer.list_topics(topic, RESPONSE_TIMEOUT_S).topics.get(topic)
    return 0 if found is None or found.error is not None else len(found.partitions)


def _in_use(count: int, layout: int) -> int:
    """Return in how many partitions keys are placed: in those that the layout topic has too, if it is known."""
    return min(count, layout or count)
