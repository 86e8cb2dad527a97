"""Reads versions of rows of reference tables, and writes rows. Blocks while it waits for the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.wire.partition import partition
from services.runtime.errors import RowNotWrittenError, TopicReadError
from services.runtime.table_writer import TableWriter

if TYPE_CHECKING:
    from services.runtime.kafka.interfaces import Kafka


class KafkaTables:
    """The first use of a client connects it. One thread at a time uses it."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._reader = kafka.blocking_reader("query-tables")
        self._writer: TableWriter | None = None

    def version(self, topic: str, key: str) -> int | None:
        """Return the version of a row; None if there is none. Raises RowNotWrittenError."""
        found, name = None, key.encode()
        try:
            partitions = self._reader.partitions([topic])
            home = [partitions[partition(name, len(partitions))]] if partitions else []
            for records in self._reader.read(self._reader.bounds(home)):
                for record in records:
                    if record.key == name:
                        found = None if record.value is None else record.offset
            self._reader.stop()
        except TopicReadError as error:
            raise RowNotWrittenError(topic, key, error.detail) from error
        return found

    def write(self, topic: str, key: str, value: bytes | None, author: str) -> int:
        """Write a row, or remove it with None, and return its version. Raises RowNotWrittenError."""
        self._writer = self._writer or TableWriter(self._kafka)
        return self._writer.write(topic, key, value, author)
