"""The way to the broker: a client that waits until one answers, and knows why none does."""

import time
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from services.topics.errors import LoginRefused, NoBroker, WrongOptions
from services.topics.settings import Settings

ANSWER_S = 2.0
REFUSED = {"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"}
TELLS_NOTHING = {"_ALL_BROKERS_DOWN"}


class Problems:
    """What the client met with, as it tells from its own thread."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Note one."""
        if error.name() not in TELLS_NOTHING and not self.refused:
            self.last = error

    @property
    def refused(self) -> bool:
        """Whether a broker is there and wants something else of us: waiting does not help."""
        return self.last is not None and self.last.name() in REFUSED


def connect(settings: Settings) -> AdminClient:
    """A client of a broker that answers. Raises WrongOptions, LoginRefused, NoBroker."""
    problems = Problems()
    config: dict[str, Any] = {"log_level": 0, **settings.client(), "error_cb": problems}
    try:
        admin = AdminClient(config)
    except KafkaException as error:
        raise WrongOptions(error.args[0].str()) from error
    _await_answer(admin, problems, settings.kafka, settings.patience)
    return admin


def _await_answer(admin: AdminClient, problems: Problems, kafka: str, patience: timedelta) -> None:
    deadline = time.monotonic() + patience.total_seconds()
    while True:
        try:
            admin.list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            admin.poll(0)
            why = problems.last or error.args[0]
        else:
            return
        if problems.refused:
            raise LoginRefused(kafka, why.str())
        if time.monotonic() >= deadline:
            raise NoBroker(kafka, why.str())
