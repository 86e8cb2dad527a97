"""Looks whether topics still have as many partitions as keys were spread over at the start."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException

from services.query.errors import PartitionsChangedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts.model.named_state import NamedState

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
ANSWER_S = 2.0
GROUP = "stateloop-query-partitions"
"""The client wants a name; it joins no group."""


async def watched(states: Iterable[NamedState], client: Mapping[str, str]) -> None:
    """Look until cancelled. Raises PartitionsChangedError: where a key is has changed, and answers would be wrong."""
    known = {state.topic: state.partitions for state in states}
    consumer = Consumer({"log_level": 0, "reconnect.backoff.max.ms": 500, **client, "group.id": GROUP})
    thread = ThreadPoolExecutor(1, "partitions")
    try:
        while True:
            for topic, count in known.items():
                found = await asyncio.get_running_loop().run_in_executor(thread, _count, consumer, topic)
                if found and found != count:
                    raise PartitionsChangedError(topic, count, found)
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _count(consumer: Consumer, topic: str) -> int:
    """0 while nobody tells, or the topic is not there: that is noticed by who reads it."""
    try:
        found = consumer.list_topics(topic, ANSWER_S).topics.get(topic)
    except KafkaException as error:
        log.warning("the number of partitions is not known", extra={"facts": {"topic": topic, "detail": str(error)}})
        return 0
    return 0 if found is None or found.error is not None else len(found.partitions)
