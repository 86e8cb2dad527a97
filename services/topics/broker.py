"""Connects to a broker: waits until one answers, and reports why none does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from services.runtime.kafka_clients import create_admin_client
from services.topics.errors import InvalidOptionsError, LoginRefusedError, NoBrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka.admin import AdminClient

    from services.topics.settings import TopicsSettings

ANSWER_S = 2.0
REPORT_EVERY_S = 10.0
REFUSED = {"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"}
UNSPECIFIC = {"_ALL_BROKERS_DOWN"}


class Problems:
    """The errors that the client reports from its own thread."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Store an error."""
        if error.name() not in UNSPECIFIC and not self.refused:
            self.last = error

    @property
    def refused(self) -> bool:
        """Whether a broker answers and refuses this client, so that waiting does not help."""
        return self.last is not None and self.last.name() in REFUSED


def connect(settings: TopicsSettings, report: Callable[[str], None]) -> AdminClient:
    """Return a client of a broker that answers; `report` takes the progress.

    Raises InvalidOptionsError, LoginRefusedError and NoBrokerError.
    """
    problems = Problems()
    try:
        admin = create_admin_client(settings.client(), "topics", {"error_cb": problems})
    except KafkaException as error:
        raise InvalidOptionsError(error.args[0].str()) from error
    _await_answer(admin, problems, settings, report)
    return admin


def _await_answer(
    admin: AdminClient, problems: Problems, settings: TopicsSettings, report: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + settings.patience.total_seconds()
    next_report = time.monotonic()
    while True:
        try:
            admin.list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            admin.poll(0)
            why = (problems.last or error.args[0]).str()
        else:
            return
        if problems.refused:
            raise LoginRefusedError(settings.kafka, why)
        now = time.monotonic()
        if now >= deadline:
            raise NoBrokerError(settings.kafka, why, settings.patience)
        if now >= next_report:
            report(f"waits for a broker at {settings.kafka}, for {deadline - now:.0f} s more at the most ({why})")
            next_report = now + REPORT_EVERY_S
