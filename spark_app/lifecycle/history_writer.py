"""Writes events of the past to the topic of events, each of them once, also by a process that is killed and repeated.

Records and the position behind them are written in one transaction: the position is the offset of a consumer group.
"""

from contextlib import suppress

from pydantic import BaseModel, ConfigDict

from contracts.settings import KafkaSettings
from services.runtime.errors import DeliveryFailedError, KafkaRequestError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.blocking import TransactionalKafkaProducer
from services.runtime.kafka.values import GroupOffset, Output, Partition
from spark_app.errors import BrokerUnreachableError, HistoryWriteError

NAME = "bootstrap"


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
    deleted: int = 0
    """The number of records that the topic had deleted before the first row was written."""

    @property
    def is_complete(self) -> bool:
        """Return whether all files have been written."""
        return self.file == self.of


class HistoryWriter:
    """A transactional producer. Another one for the same topic aborts the transaction of this one."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        """Connect to the broker. Raises BrokerUnreachableError."""
        group = f"{topic}-{NAME}"
        self._place = Partition(topic, 0)
        admin = KafkaAdmin(settings.client(), NAME)
        try:
            self._producer = TransactionalKafkaProducer(settings.client(), NAME, group, {"linger.ms": 20}, group)
            self._stored = admin.committed(group, [self._place])[self._place]
            self._producer.begin()
        except KafkaRequestError as error:
            raise BrokerUnreachableError(settings.kafka, error.detail) from error
        finally:
            admin.close()

    def position(self) -> HistoryPosition | None:
        """Return the position that was written last before this process; None where there is none."""
        content = self._stored.metadata if self._stored.offset >= 0 else None
        return HistoryPosition.model_validate_json(content) if content else None

    def write(self, topic: str, key: bytes | None, value: bytes, timestamp_ms: int) -> None:
        """Write a record in the open transaction. Raises HistoryWriteError."""
        try:
            self._producer.enqueue(Output(topic, key, value, timestamp_ms=timestamp_ms))
        except DeliveryFailedError as error:
            raise HistoryWriteError(topic, error.detail) from error

    def commit(self, position: HistoryPosition) -> None:
        """Commit the records since the last commit, and the position behind them. Raises HistoryWriteError."""
        try:
            self._producer.commit({self._place: GroupOffset(position.row, position.model_dump_json())})
            self._producer.begin()
        except KafkaRequestError as error:
            raise HistoryWriteError(self._place.topic, error.detail) from error

    def close(self) -> None:
        """Abort the transaction of the records since the last commit."""
        with suppress(KafkaRequestError):  # the next writer aborts it too
            self._producer.abort()
        self._producer.close()
