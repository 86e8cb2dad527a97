"""Checks that a broker answers, before a command does what takes long or waits for Kafka without a word."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.runtime.errors import NoAnsweringBrokerError
from services.runtime.kafka_clients import create_admin_client

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from contracts.settings import KafkaSettings

WITHIN_S = 8.0
TRY_S = 2.0
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


def require_broker(settings: KafkaSettings, within_s: float = WITHIN_S) -> None:
    """Return when a broker answers. Raises NoAnsweringBrokerError after this time, or at once if it refuses the login.

    Raises InvalidSettingsError for options that the client does not accept.
    """
    errors = ClientErrors()
    admin = create_admin_client(settings.client(), "check", {"error_cb": errors})
    deadline = time.monotonic() + within_s
    while True:
        try:
            admin.list_topics(timeout=min(TRY_S, within_s))
        except KafkaException as error:
            admin.poll(0)
            if errors.refused or time.monotonic() >= deadline:
                problem = (errors.last or error.args[0]).str()
                raise NoAnsweringBrokerError(settings.kafka, problem) from error
        else:
            return
