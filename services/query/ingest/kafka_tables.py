"""Reads versions of rows of reference tables, and writes rows. Blocks while it waits for the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from contracts.wire.partition import partition
from services.runtime.errors import RowNotWrittenError
from services.runtime.table_writer import TableWriter
from services.runtime.topic_reader import TopicReader

if TYPE_CHECKING:
    from collections.abc import Mapping


class KafkaTables:
    """The clients are made with the first write. One thread at a time uses it."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client
        self._reader: TopicReader | None = None
        self._writer: TableWriter | None = None

    def version(self, topic: str, key: str) -> int | None:
        """Return the version of a row; None if there is none. Raises RowNotWrittenError."""
        self._reader = self._reader or TopicReader(self._client, "query-tables")
        found, name = None, key.encode()
        try:
            partitions = self._reader.partitions([topic])
            home = partition(name, len(partitions)) if partitions else 0
            for records in self._reader.read_to_end([(topic, home)]) if partitions else ():
                for one in records:
                    if one.key == name:
                        found = None if one.value is None else one.offset
            self._reader.stop()
        except KafkaException as error:
            raise RowNotWrittenError(topic, key, error.args[0].str()) from error
        return found

    def write(self, topic: str, key: str, value: bytes | None, author: str) -> int:
        """Write a row, or remove it with None, and return its version. Raises RowNotWrittenError."""
        self._writer = self._writer or TableWriter(self._client)
        return self._writer.write(topic, key, value, author)
