"""Writes rows of reference tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.runtime.errors import RowNotWrittenError
from services.runtime.kafka.options import create_producer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import KafkaError, Message

WITHIN_MS = 10_000
FLUSH_S = 0.1


class TableWriter:
    """A producer whose writes return when all in-sync replicas have the record."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._producer = create_producer(client, "table", {"message.timeout.ms": WITHIN_MS})

    def write(self, topic: str, key: str, value: bytes | None, author: str | None) -> int:
        """Write a row, or remove it with None, and return its version. Raises RowNotWrittenError.

        A removed row has no value, so the header `author` names the user.
        """
        done: list[KafkaError | Message] = []
        headers: dict[str, str | bytes | None] | None = {"author": author} if author else None
        try:
            self._producer.produce(
                topic,
                value,
                key.encode(),
                headers=headers,
                on_delivery=lambda error, message: done.append(error or message),
            )
        except KafkaException as error:
            raise RowNotWrittenError(topic, key, error.args[0].str()) from error
        while not done:
            self._producer.flush(FLUSH_S)
        (outcome,) = done
        offset = getattr(outcome, "offset", None)
        if offset is None:
            raise RowNotWrittenError(topic, key, str(outcome))
        return int(offset())
