"""Waits for a condition with a deadline, and knows when a broker is ready."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.runtime.kafka.options import create_admin_client
from services.tools.broker.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.05
ANSWER_S = 1.0


def wait_until(
    condition: Callable[[], bool],
    what: str,
    deadline_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return as soon as the condition holds; raises NotReadyError with `what` after the deadline."""
    end = clock() + deadline_s
    while not condition():
        if clock() >= end:
            raise NotReadyError(what, deadline_s)
        pause(PAUSE_S)


def answers(bootstrap: str) -> bool:
    """Return whether a broker at this address answers a request now; an open port alone does not prove it."""
    client = create_admin_client({"bootstrap.servers": bootstrap}, "broker", {"reconnect.backoff.max.ms": 100})
    try:
        client.list_topics(timeout=ANSWER_S)
    except KafkaException:
        return False
    return True
