"""Reads for how long topics keep tombstones: compaction removes them too in the end."""

from __future__ import annotations

import logging
import time
from concurrent.futures import wait
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource

from services.runtime.kafka.options import create_admin_client

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from concurrent.futures import Future
    from typing import Any

    from confluent_kafka.admin import ConfigEntry

    from contracts.model.named_state import NamedState

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 5.0
TIMEOUT_S = 10.0
"""For the responses about all topics together."""
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


def read_tombstone_retention(
    states: Iterable[NamedState], client: Mapping[str, str], stopping: Callable[[], bool] = lambda: False
) -> dict[str, int] | None:
    """Return the brokers' setting for `TombstoneRetention.retention_ms`; None when the service stops.

    A day is assumed for a topic without a response. Takes TIMEOUT_S at most.
    """
    topics = {
        state.topic: state.name for state in states if state.key is None or state.windowed
    }  # the others ignore tombstones
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    admin = create_admin_client(client, "query-tombstones")  # must stay alive until all responses are here
    responses = admin.describe_configs(resources, request_timeout=RESPONSE_TIMEOUT_S)
    if not _wait_for(responses.values(), stopping):
        return None
    found = {}
    for resource, future in responses.items():
        config = _config(resource.name, future)
        if "compact" in config.get("cleanup.policy", "compact"):
            found[topics[resource.name]] = int(config.get("delete.retention.ms", DAY_MS))
    return found


def _wait_for(responses: Collection[Future[Any]], stopping: Callable[[], bool]) -> bool:
    """Wait for all responses, until the timeout. Return False when the service stops."""
    deadline = time.monotonic() + TIMEOUT_S
    while wait(responses, SLICE_S).not_done and time.monotonic() < deadline:
        if stopping():
            return False
    return True


def _config(topic: str, response: Future[dict[str, ConfigEntry]]) -> dict[str, str]:
    """Return the topic's settings; none where the brokers did not respond."""
    try:
        return {name: entry.value or "" for name, entry in response.result(0).items()}
    except (KafkaException, TimeoutError) as error:
        facts = {"topic": topic, "detail": str(error) or "no response"}
        log.warning("the retention of tombstones of a topic is unknown: one day is assumed", extra={"facts": facts})
        return {}
