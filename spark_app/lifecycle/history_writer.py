"""Writes events of the past to the topic of events, each of them once, also by a process that is killed and repeated.

Records and the position behind them are written in one transaction: the position is the offset of a consumer group.
"""

from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from pydantic import BaseModel, ConfigDict

from contracts.settings import KafkaSettings
from services.runtime.kafka.options import create_consumer, create_producer
from spark_app.errors import BrokerUnreachableError, HistoryWriteError
from spark_app.topics.identity import PATIENCE_S

NAME = "bootstrap"
TRANSACTION_S = 60.0
ROOM_S = 0.1


class HistoryPosition(BaseModel):
    """The position up to which the files have been written."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    files: str
    """The digest of the list of files."""
    file: int = 0
    """The number of the file to continue with, from 0."""
    of: int
    """The number of files."""
    row: int = 0
    """The number of the file's row to continue with."""
    refused: int = 0
    """The number of rows before it that are dead letters."""
    config: dict[str, str] = {}
    """The settings of the topic before the bootstrap; empty if it changes none."""

    @property
    def is_complete(self) -> bool:
        """Return whether all files have been written."""
        return self.file == self.of


class HistoryWriter:
    """A transactional producer. Another one for the same topic aborts the transaction of this one."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        """Connect to the broker. Raises BrokerUnreachableError."""
        group = f"{topic}-{NAME}"
        self._topic = topic
        self._consumer = create_consumer(settings.client(), NAME, group)
        self._producer = create_producer(settings.client(), NAME, {"transactional.id": group, "linger.ms": 20})
        try:
            self._producer.init_transactions(TRANSACTION_S)
            (self._stored,) = self._consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise BrokerUnreachableError(settings.kafka, error.args[0].str()) from error

    def position(self) -> HistoryPosition | None:
        """Return the position that was written last before this process; None where there is none."""
        content = self._stored.metadata if self._stored.offset >= 0 else None
        return HistoryPosition.model_validate_json(content) if content else None

    def write(self, topic: str, key: bytes | None, value: bytes, timestamp_ms: int) -> None:
        """Write a record in the open transaction. Raises HistoryWriteError."""
        options: dict[str, Any] = {"key": key, "value": value, "timestamp": timestamp_ms}
        while True:
            try:
                self._producer.produce(topic, **options)
            except BufferError:
                self._producer.poll(ROOM_S)
            except KafkaException as error:
                raise HistoryWriteError(topic, error.args[0].str()) from error
            else:
                return

    def commit(self, position: HistoryPosition) -> None:
        """Commit the records since the last commit, and the position behind them. Raises HistoryWriteError."""
        place = TopicPartition(self._topic, 0, position.row, position.model_dump_json())
        try:
            self._producer.send_offsets_to_transaction([place], self._consumer.consumer_group_metadata(), TRANSACTION_S)
            self._producer.commit_transaction(TRANSACTION_S)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise HistoryWriteError(self._topic, error.args[0].str()) from error

    def close(self) -> None:
        """Abort the transaction of the records since the last commit."""
        with suppress(KafkaException):  # the next writer aborts it too
            self._producer.abort_transaction(TRANSACTION_S)
        self._consumer.close()
