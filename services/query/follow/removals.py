"""For how long topics keep the records that remove keys: compaction takes those away too in the end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contracts.named import NamedState

log = logging.getLogger(__name__)

ANSWER_S = 5.0
DAY_MS = 24 * 3600 * 1000
"""Kafka's own default."""
MOST_S = 60.0
LEAST_S = 1.0
SHARE = 8


class Removals(NamedTuple):
    """For how many milliseconds a removal is kept at least, by state; never lost in states that are not here.

    `now` is in milliseconds since 1970, and goes on while the service is away.
    """

    kept: Mapping[str, int]
    now: Callable[[], int]

    @property
    def every(self) -> float:
        """After how many seconds to note again that all of a topic is here: often enough to be sure of it in time."""
        least = min(self.kept.values(), default=DAY_MS) / 1000 / SHARE
        return max(LEAST_S, min(MOST_S, least))

    def lost(self, state: str, fresh: int | None) -> bool:
        """Whether a removal can have come and gone since all of the topic was here, None: nobody knows when."""
        kept = self.kept.get(state)
        if kept is None:
            return False
        return fresh is None or self.now() - fresh > max(kept, SHARE * self.every * 1000)


NEVER_LOST = Removals({}, lambda: 0)


def kept(states: Iterable[NamedState], client: Mapping[str, str]) -> dict[str, int]:
    """What the brokers say, for `Removals.kept`; a day for a topic of which they say nothing."""
    topics = {state.topic: state.name for state in states if state.key is None}  # those with a key ignore removals
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    admin = AdminClient({**client, "log_level": 0})  # has to live until all is answered
    found = {}
    for resource, future in admin.describe_configs(resources, request_timeout=ANSWER_S).items():
        try:
            config = {name: entry.value or "" for name, entry in future.result(2 * ANSWER_S).items()}
        except (KafkaException, TimeoutError) as error:
            facts = {"topic": resource.name, "detail": str(error)}
            log.warning("how long a topic keeps removals is not known: a day is taken", extra={"facts": facts})
            config = {}
        if "compact" in config.get("cleanup.policy", "compact"):
            found[topics[resource.name]] = int(config.get("delete.retention.ms", DAY_MS))
    return found
