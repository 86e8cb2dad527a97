"""Compacts the topic of a script, as a broker does with the settings of the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.network import WatchedBroker

RETENTION_S = 8.0
"""The time for which the topic keeps tombstones."""
MARGIN_S = 4.0
"""The broker keeps them longer by this time: more than the clocks of two machines differ."""
LAG_S = 3.0
"""Younger records are not compacted."""


def compact(broker: WatchedBroker, topic: str) -> None:
    """Compact the logs up to the first record that is too young."""
    now_ms = broker.now_ms
    for log in broker.topics.topic(topic).logs:
        young = log.first_since(now_ms - round(LAG_S * 1000))
        end = log.end if young is None else young.offset
        log.compact(min(end, log.end - 1), now_ms - round((RETENTION_S + MARGIN_S) * 1000))
