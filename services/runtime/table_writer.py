"""Writes rows of reference tables."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from services.runtime.errors import DeliveryFailedError, RowNotWrittenError
from services.runtime.kafka.values import BY_KEY, Output

if TYPE_CHECKING:
    from services.runtime.kafka.interfaces import Kafka

WITHIN = timedelta(seconds=10)


class TableWriter:
    """A producer whose writes return when all in-sync replicas have the record."""

    def __init__(self, kafka: Kafka) -> None:
        self._producer = kafka.blocking_producer("table", WITHIN)

    def write(self, topic: str, key: str, value: bytes | None, author: str | None) -> int:
        """Write a row, or remove it with None, and return its version. Raises RowNotWrittenError.

        A removed row has no value, so the header `author` names the user.
        """
        headers = (("author", author),) if author else ()
        try:
            (version,) = self._producer.send([Output(topic, key.encode(), value, BY_KEY, 0, headers)])
        except DeliveryFailedError as error:
            raise RowNotWrittenError(topic, key, error.detail) from error
        return version
