"""Writes single records of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.runtime.kafka.interfaces import BY_KEY, Output

if TYPE_CHECKING:
    from services.runtime.kafka.interfaces import Producer


class Publisher(Protocol):
    """The producer of a worker."""

    async def publish(self, topic: str, key: bytes | None, value: bytes, timestamp: int = 0) -> None:
        """Write a record, with a time in milliseconds (0 is now), and wait until all in-sync replicas have it.

        Records of one key are written in the order of the calls. Raises DeliveryFailedError.
        """


class KafkaPublisher:
    """Writes with a producer. Implements Publisher."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    async def publish(self, topic: str, key: bytes | None, value: bytes, timestamp: int = 0) -> None:
        """See `Publisher.publish`."""
        await self._producer.send([Output(topic, key, value, BY_KEY, timestamp)])
