"""Writes records; in a dry run, it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message

from services.redrive.errors import WriteError
from services.runtime.kafka.options import create_producer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.redrive.redrive import Headers

ROOM_S = 0.1
FLUSH_S = 30


class KafkaWriter:
    """A producer. A later write, or `close`, raises the error of a record."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._producer = create_producer(client, "redrive", {"message.max.bytes": 64 * 1024 * 1024})
        self._failed: WriteError | None = None

    def write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """See `Writer.write`. Raises WriteError."""
        while True:
            self._producer.poll(0)
            self._check()
            try:
                self._producer.produce(
                    topic, value, key, timestamp=timestamp, headers=dict(headers), on_delivery=self._on_delivery
                )
            except BufferError:
                self._producer.poll(ROOM_S)
            except KafkaException as error:
                raise failed(topic, error.args[0]) from error
            else:
                return

    def close(self) -> None:
        """Wait until the broker has all records. Raises WriteError."""
        left = self._producer.flush(FLUSH_S)
        self._check()
        if left:
            raise WriteError("its topic", "TIMED_OUT", f"{left} records were not confirmed in {FLUSH_S} s")

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed = failed(message.topic() or "", error)

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed


class NoWriter:
    """The writer of a dry run. Implements Writer."""

    def write(self, _topic: str, _key: bytes | None, _value: bytes | None, _timestamp: int, _headers: Headers) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def failed(topic: str, error: KafkaError) -> WriteError:
    """Return Kafka's error as one of this part."""
    return WriteError(topic, error.name(), error.str())
