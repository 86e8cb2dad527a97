"""The number of partitions of each state's topic: read from the brokers at the start, and watched from then on."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from services.query.errors import NoTopicError, PartitionsChangedError
from services.runtime.errors import KafkaRequestError, NoBrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from contracts.model.named_state import NamedState
    from services.runtime.kafka.interfaces import Admin

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 2.0
BROKER_TIMEOUT_S = 60.0
TOPIC_TIMEOUT_S = 3.0
"""The wait for a topic that a broker does not list: another broker may just have created it."""
RETRY_S = 0.2
CHECK_INTERVAL_S = 5.0


def with_partition_counts(
    states: Mapping[str, NamedState], admin: Admin, kafka: str, stopping: Callable[[], bool] = lambda: False
) -> dict[str, NamedState] | None:
    """Return the states with the number of partitions of their topics; None when the service stops.

    Topics may have been created with another number than the application declares. Waits for a broker; `kafka` is the
    address of the brokers. Raises NoBrokerError, NoTopicError.
    """
    try:
        found = _read_counts({state.topic for state in states.values()}, admin, stopping)
    except KafkaRequestError as error:
        raise NoBrokerError(kafka, error.detail) from error
    if found is None:
        return None
    for state in states.values():
        if not found.get(state.topic):
            raise NoTopicError(state.topic, kafka)
    for topic in sorted({state.layout_topic for state in states.values() if state.layout_topic} - found.keys()):
        advice = "without it no instance knows which partitions are being added: create it, or grant Describe on it"
        log.warning("a topic is not listed", extra={"facts": {"topic": topic, "advice": advice}})
    return {
        name: replace(state, partitions=_in_use(found[state.topic], found.get(state.layout_topic or "", 0)))
        for name, state in states.items()
    }


async def watch_partition_counts(states: Iterable[NamedState], admin: Admin) -> None:
    """Check the counts until cancelled. Raises PartitionsChangedError: keys are then in other partitions."""
    watched = list(states)
    thread = ThreadPoolExecutor(1, "partition-counts")
    try:
        while True:
            for state in watched:
                found = await asyncio.get_running_loop().run_in_executor(thread, _read_count, admin, state)
                if found and found != state.partitions:
                    raise PartitionsChangedError(state.topic, state.partitions, found)
            await asyncio.sleep(CHECK_INTERVAL_S)
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def growing_states(states: Collection[NamedState], admin: Admin) -> set[str]:
    """Return the names of the states whose topics do not have the number of partitions that is in use.

    While partitions are added, records move to other partitions. All are returned without a response.
    """
    counts = _counts_now([state.topic for state in states], admin)
    return {state.name for state in states if counts.get(state.topic) != state.partitions}


def _read_counts(topics: Collection[str], admin: Admin, stopping: Callable[[], bool]) -> Mapping[str, int] | None:
    """Return the counts; None when the service stops. Raises KafkaRequestError without a broker."""
    deadline, listed_at = time.monotonic() + BROKER_TIMEOUT_S, float("inf")
    while not stopping():
        try:
            found = admin.partition_counts(within_s=RESPONSE_TIMEOUT_S)
        except KafkaRequestError:
            if time.monotonic() >= deadline:
                raise
        else:
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


def _read_count(admin: Admin, state: NamedState) -> int:
    """Return the count; 0 without a response or without the topic, which the reader of the topic reports."""
    counts = _counts_now([topic for topic in (state.topic, state.layout_topic) if topic], admin)
    return _in_use(counts.get(state.topic, 0), counts.get(state.layout_topic or "", 0))


def _counts_now(topics: Collection[str], admin: Admin) -> Mapping[str, int]:
    """Return the counts of the topics; none without a response in time."""
    try:
        return admin.partition_counts(topics, RESPONSE_TIMEOUT_S)
    except KafkaRequestError as error:
        facts = {"topics": sorted(topics), "detail": error.detail}
        log.warning("the number of partitions is unknown", extra={"facts": facts})
        return {}


def _in_use(count: int, layout: int) -> int:
    """Return in how many partitions keys are placed: in those that the layout topic has too, if it is known."""
    return min(count, layout or count)
