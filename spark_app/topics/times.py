"""Lets records have their own times on a topic that the broker stamps, and stay there although they are old."""

from collections.abc import Mapping
from operator import not_

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from contracts.model.topics import Stamp
from contracts.settings import KafkaSettings
from services.runtime.kafka.options import create_admin_client
from spark_app.errors import HistoryWriteError
from spark_app.topics.identity import PATIENCE_S

STAMP, RETENTION = "message.timestamp.type", "retention.ms"
PAUSE_S = 0.05
"""The pause between two looks whether the broker has applied a change, which it does after it has answered."""
OWN_TIMES = {STAMP: Stamp.PRODUCER.value, RETENTION: "-1"}


class TopicTimes:
    """The settings of one topic."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._topic = topic
        self._admin = create_admin_client(settings.client(), "bootstrap")

    def current(self) -> dict[str, str]:
        """Return the present settings. Raises HistoryWriteError."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._topic)
        try:
            found = self._admin.describe_configs([resource], request_timeout=PATIENCE_S)[resource].result()
        except KafkaException as error:
            raise HistoryWriteError(self._topic, error.args[0].str()) from error
        return {name: found[name].value or "" for name in OWN_TIMES}

    def change(self, values: Mapping[str, str]) -> None:
        """Change settings, and return when the broker has applied them. Raises HistoryWriteError."""
        entries = [ConfigEntry(*one, incremental_operation=AlterConfigOpType.SET) for one in values.items()]
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._topic, incremental_configs=entries)
        try:
            self._admin.incremental_alter_configs([resource], request_timeout=PATIENCE_S)[resource].result()
        except KafkaException as error:
            raise HistoryWriteError(self._topic, error.args[0].str()) from error
        applied = Retrying(retry=retry_if_result(not_), stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(PAUSE_S))
        try:
            applied(lambda: values.items() <= self.current().items())
        except RetryError as error:
            raise HistoryWriteError(self._topic, f"the broker does not apply {dict(values)}") from error
