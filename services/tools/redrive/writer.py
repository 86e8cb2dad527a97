"""Writes records; in a dry run, it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.interfaces import BY_KEY, Output
from services.tools.redrive.errors import WriteError

if TYPE_CHECKING:
    from services.runtime.kafka.interfaces import BlockingProducer
    from services.tools.redrive.redrive import Headers

LARGEST = {"message.max.bytes": 64 * 1024 * 1024}
"""The options of the producer: a broker may be configured to take larger records than a client sends by default."""
FLUSH_S = 30


class KafkaWriter:
    """Writes with a producer. A later write, or `close`, raises the error of a record. Implements Writer."""

    def __init__(self, producer: BlockingProducer) -> None:
        self._producer = producer

    def write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """See `Writer.write`. Raises WriteError."""
        try:
            self._producer.enqueue(Output(topic, key, value, BY_KEY, timestamp, tuple(headers.items())))
        except DeliveryFailedError as error:
            raise WriteError(error.topic, error.code, error.detail) from error

    def close(self) -> None:
        """Wait until the broker has all records. Raises WriteError."""
        try:
            left = self._producer.flush(FLUSH_S)
        except DeliveryFailedError as error:
            raise WriteError(error.topic, error.code, error.detail) from error
        if left:
            raise WriteError("its topic", "TIMED_OUT", f"{left} records were not confirmed in {FLUSH_S} s")


class NoWriter:
    """The writer of a dry run. Implements Writer."""

    def write(self, _topic: str, _key: bytes | None, _value: bytes | None, _timestamp: int, _headers: Headers) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
