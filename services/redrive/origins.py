"""Reads single records at the origins of dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from services.redrive.dead_letters import NAME
from services.runtime.kafka.options import create_consumer, record_of
from services.runtime.topic_records import RESPONSE_S, read_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.records.record import Record

NEAR = 1000
"""The number of records below which reading on is faster than another seek."""
FETCH_WAIT_MS = 10
"""The first retained record shows what was deleted just now."""


class Origins:
    """A reader of any topic. Neighbouring records are cheap in the order of their offsets."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._consumer = create_consumer(
            client, NAME, f"stateloop-{NAME}", {"auto.offset.reset": "earliest", "fetch.wait.max.ms": FETCH_WAIT_MS}
        )
        self._at = ("", 0, 0)

    def record(self, topic: str, partition: int, offset: int) -> Record | None:
        """Return the record at that position; None if the topic has deleted it. Raises TopicReadError."""
        try:
            if not self._is_kept(topic, partition, offset):
                return None
            self._go(topic, partition, offset)
            record = self._next(topic)
            while record is not None and record.offset < offset:
                record = self._next(topic)
        except KafkaException as error:
            raise read_error(topic, error.args[0]) from error
        if record is None or record.offset != offset:
            self._at = ("", 0, 0)
            return None
        self._at = (topic, partition, offset + 1)
        return record

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _is_kept(self, topic: str, partition: int, offset: int) -> bool:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), RESPONSE_S)
        return bool(low <= offset < high)

    def _go(self, topic: str, partition: int, offset: int) -> None:
        there, number, at = self._at
        if (there, number) != (topic, partition) or not at <= offset <= at + NEAR:
            self._consumer.assign([TopicPartition(topic, partition, offset)])

    def _next(self, topic: str) -> Record | None:
        """Return the next record; None if the rest of the partition was compacted away."""
        message = self._consumer.poll(RESPONSE_S)
        if message is None:
            return None
        if (error := message.error()) is not None:
            raise read_error(topic, error)
        return record_of(message)
