"""Checks that a broker answers: now, or within a time, before a command begins long work or waits without a message."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.runtime.errors import LoginRefusedError, NoBrokerError
from services.runtime.kafka.options import create_admin_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError

    from contracts.settings import KafkaSettings

WITHIN_S = 8.0
TRY_S = 2.0
ANSWER_S = 1.0
REPORT_EVERY_S = 10.0
REFUSED = {"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"}
UNSPECIFIC = {"_ALL_BROKERS_DOWN"}


class ClientErrors:
    """The errors that a Kafka client reports from its own thread."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Store an error."""
        if error.name() not in UNSPECIFIC and not self.refused:
            self.last = error

    @property
    def refused(self) -> bool:
        """Whether a broker answers and refuses this client, so that waiting is useless."""
        return self.last is not None and self.last.name() in REFUSED


def require_broker(
    settings: KafkaSettings, within_s: float = WITHIN_S, report: Callable[[str], None] = lambda _: None
) -> None:
    """Require that a broker answers within this time; `report` takes the progress of the wait.

    Raises NoBrokerError, LoginRefusedError at once, and InvalidSettingsError for options that the client refuses.
    """
    errors = ClientErrors()
    admin = create_admin_client(settings.client(), "check", {"error_cb": errors})
    deadline, next_report = time.monotonic() + within_s, 0.0
    while True:
        try:
            admin.list_topics(timeout=min(TRY_S, within_s))
        except KafkaException as error:
            admin.poll(0)
            problem = (errors.last or error.args[0]).str()
        else:
            return
        if errors.refused:
            raise LoginRefusedError(settings.kafka, problem)
        now = time.monotonic()
        if now >= deadline:
            raise NoBrokerError(settings.kafka, problem, within_s)
        if now >= next_report:
            report(f"waits for a broker at {settings.kafka}, for {deadline - now:.0f} s more at the most ({problem})")
            next_report = now + REPORT_EVERY_S


def answers(kafka: str, name: str) -> bool:
    """Return whether a broker at this address answers a request now; an open port alone does not prove it."""
    client = create_admin_client({"bootstrap.servers": kafka}, name, {"reconnect.backoff.max.ms": 100})
    try:
        client.list_topics(timeout=ANSWER_S)
    except KafkaException:
        return False
    return True
