"""Lets records have their own times on a topic that the broker stamps, and stay there although they are old."""

from collections.abc import Mapping
from operator import not_

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from contracts.model.topics import Stamp
from contracts.settings import KafkaSettings
from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.admin import KafkaAdmin
from spark_app.errors import HistoryWriteError

STAMP, RETENTION = "message.timestamp.type", "retention.ms"
PATIENCE_S, PAUSE_S = 10.0, 0.05
"""The wait until the broker has applied a change, which it does after it has answered, and the pause between looks."""
OWN_TIMES = {STAMP: Stamp.PRODUCER.value, RETENTION: "-1"}


class TopicTimes:
    """The settings of one topic."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._topic = topic
        self._admin = KafkaAdmin(settings.client(), "bootstrap")

    def current(self) -> dict[str, str]:
        """Return the present settings. Raises HistoryWriteError."""
        try:
            config = self._admin.configs([self._topic])[self._topic]
        except KafkaRequestError as error:
            raise HistoryWriteError(self._topic, error.detail) from error
        return {name: config[name] for name in OWN_TIMES}

    def change(self, values: Mapping[str, str]) -> None:
        """Change settings, and return when the broker has applied them. Raises HistoryWriteError."""
        try:
            self._admin.alter(self._topic, values)
        except KafkaRequestError as error:
            raise HistoryWriteError(self._topic, error.detail) from error
        applied = Retrying(retry=retry_if_result(not_), stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(PAUSE_S))
        try:
            applied(lambda: values.items() <= self.current().items())
        except RetryError as error:
            raise HistoryWriteError(self._topic, f"the broker does not apply {dict(values)}") from error
