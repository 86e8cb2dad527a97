"""For how long topics keep the records that remove keys: compaction takes those away too in the end."""

from __future__ import annotations

import logging
import time
from concurrent.futures import wait
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from concurrent.futures import Future
    from typing import Any

    from confluent_kafka.admin import ConfigEntry

    from contracts.model.named_state import NamedState

log = logging.getLogger(__name__)

ANSWER_S = 5.0
PATIENCE_S = 10.0
SLICE_S = 0.1
"""After how long it is looked whether it shall stop."""
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


def kept(
    states: Iterable[NamedState], client: Mapping[str, str], stopping: Callable[[], bool] = lambda: False
) -> dict[str, int] | None:
    """What the brokers say, for `Removals.kept`; a day for a topic of which they say nothing, None if it shall stop.

    Takes PATIENCE_S at the most, for all topics together.
    """
    topics = {
        state.topic: state.name for state in states if state.key is None or state.windowed
    }  # those with a key ignore removals
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    admin = AdminClient({**client, "log_level": 0})  # has to live until all is answered
    asked = admin.describe_configs(resources, request_timeout=ANSWER_S)
    if not _waited(asked.values(), stopping):
        return None
    found = {}
    for resource, future in asked.items():
        config = _config(resource.name, future)
        if "compact" in config.get("cleanup.policy", "compact"):
            found[topics[resource.name]] = int(config.get("delete.retention.ms", DAY_MS))
    return found


def _waited(asked: Collection[Future[Any]], stopping: Callable[[], bool]) -> bool:
    """Whether all that will come has come; False: it shall stop."""
    deadline = time.monotonic() + PATIENCE_S
    while wait(asked, SLICE_S).not_done and time.monotonic() < deadline:
        if stopping():
            return False
    return True


def _config(topic: str, answer: Future[dict[str, ConfigEntry]]) -> dict[str, str]:
    """The topic's settings; none where the brokers told none."""
    try:
        return {name: entry.value or "" for name, entry in answer.result(0).items()}
    except (KafkaException, TimeoutError) as error:
        facts = {"topic": topic, "detail": str(error) or "no answer"}
        log.warning("how long a topic keeps removals is not known: a day is taken", extra={"facts": facts})
        return {}
