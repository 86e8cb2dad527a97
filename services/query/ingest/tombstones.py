"""Reads for how long topics keep tombstones: compaction removes them too in the end."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from services.runtime.call_thread import CallThread
from services.runtime.errors import KafkaRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from contracts.model.named_state import NamedState
    from services.runtime.kafka.interfaces import Admin

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 5.0
SLICE_S = 0.1
"""The interval at which a stop is noticed."""
DAY_MS = 24 * 3600 * 1000
"""The default of Kafka's delete.retention.ms."""
MAX_INTERVAL_S = 60.0
MIN_INTERVAL_S = 1.0
INTERVALS_PER_RETENTION = 8


class TombstoneRetention(NamedTuple):
    """The minimum time that a tombstone is kept, in milliseconds, by state; states that are not here keep them forever.

    `now` is in milliseconds since 1970, on a clock that goes on while the service is stopped.
    """

    retention_ms: Mapping[str, int]
    now: Callable[[], int]

    @property
    def check_interval_s(self) -> float:
        """The interval at which to note that a store has all records: several times within the shortest retention."""
        interval = min(self.retention_ms.values(), default=DAY_MS) / 1000 / INTERVALS_PER_RETENTION
        return max(MIN_INTERVAL_S, min(MAX_INTERVAL_S, interval))

    def is_exceeded(self, state: str, caught_up_at: int | None) -> bool:
        """Return whether a tombstone can have been written and removed since the store had all records.

        `caught_up_at` is None where that time is unknown.
        """
        retention = self.retention_ms.get(state)
        if retention is None:
            return False
        shortest = INTERVALS_PER_RETENTION * self.check_interval_s * 1000
        return caught_up_at is None or self.now() - caught_up_at > max(retention, shortest)


UNLIMITED = TombstoneRetention({}, lambda: 0)


async def read_tombstone_retention(
    states: Iterable[NamedState], admin: Admin, stopping: Callable[[], bool] = lambda: False
) -> dict[str, int] | None:
    """Return the brokers' setting for `TombstoneRetention.retention_ms`; None when the service stops.

    A day is assumed for a topic without a response.
    """
    topics = {
        state.topic: state.name for state in states if state.key is None or state.windowed
    }  # the others ignore tombstones
    thread = CallThread("tombstones")
    reading = thread.call(partial(_configs, admin, topics))
    thread.close()
    while not reading.done():
        if stopping():
            return None
        await asyncio.wait([reading], timeout=SLICE_S)
    configs = await reading
    return {
        name: int(configs[topic].get("delete.retention.ms", DAY_MS))
        for topic, name in topics.items()
        if "compact" in configs[topic].get("cleanup.policy", "compact")
    }


def _configs(admin: Admin, topics: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of each topic: none of one that the brokers refuse, and of all if they do not respond."""
    refused: dict[str, Mapping[str, str]] = {}
    while left := [topic for topic in topics if topic not in refused]:
        try:
            return {**refused, **admin.configs(left, RESPONSE_TIMEOUT_S)}
        except KafkaRequestError as error:
            unknown = left if error.is_of_client else [error.topic]
            for topic in unknown:
                facts = {"topic": topic, "detail": error.detail}
                log.warning(
                    "the retention of tombstones of a topic is unknown: one day is assumed", extra={"facts": facts}
                )
            refused.update((topic, {}) for topic in unknown)
    return refused
