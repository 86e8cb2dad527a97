"""Checks that a broker answers and accepts this client, before a process begins long work or waits in silence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.runtime.errors import CertificateRefusedError, LoginRefusedError, NoBrokerError
from services.runtime.kafka.certificates import certificate_problem
from services.runtime.kafka.options import create_admin_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError

    from contracts.errors import PermanentError
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

    Raises NoBrokerError, CertificateRefusedError and LoginRefusedError at once, and InvalidSettingsError for options
    that the client refuses.
    """
    attempt = _Attempt(settings)
    deadline, next_report = time.monotonic() + within_s, 0.0
    while problem := attempt.problem(min(TRY_S, within_s)):
        now = time.monotonic()
        if now >= deadline:
            raise NoBrokerError(settings.kafka, problem, within_s)
        if now >= next_report:
            report(f"waits for a broker at {settings.kafka}, for {deadline - now:.0f} s more at the most ({problem})")
            next_report = now + REPORT_EVERY_S


def require_accepted(settings: KafkaSettings) -> None:
    """Require that the broker, if it answers, accepts this client. A broker that is away is no error: it is awaited.

    Raises CertificateRefusedError and LoginRefusedError, and InvalidSettingsError for options that the client refuses.
    """
    if "security.protocol" in settings.kafka_options:
        _Attempt(settings).problem(TRY_S)


class _Attempt:
    """Requests to the broker by one client."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._errors = ClientErrors()
        self._admin = create_admin_client(settings.client(), "check", {"error_cb": self._errors})

    def problem(self, within_s: float) -> str | None:
        """Return why no broker answers; None if one does. Raises CertificateRefusedError, LoginRefusedError."""
        try:
            self._admin.list_topics(timeout=within_s)
        except KafkaException as error:
            self._admin.poll(0)
            problem = (self._errors.last or error.args[0]).str()
        else:
            return None
        if self._errors.refused:
            raise self._refusal(problem)
        return problem

    def _refusal(self, problem: str) -> PermanentError:
        if wrong := certificate_problem(self._settings.client()):
            return CertificateRefusedError(wrong)
        return LoginRefusedError(self._settings.kafka, problem)


def answers(kafka: str, name: str) -> bool:
    """Return whether a broker at this address answers a request now; an open port alone does not prove it."""
    client = create_admin_client({"bootstrap.servers": kafka}, name, {"reconnect.backoff.max.ms": 100})
    try:
        client.list_topics(timeout=ANSWER_S)
    except KafkaException:
        return False
    return True
