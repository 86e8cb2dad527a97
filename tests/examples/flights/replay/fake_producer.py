"""A producer that keeps what it was given, and delivers when it is polled."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING

import orjson
from confluent_kafka import KafkaError

if TYPE_CHECKING:
    from examples.flights.replay.sender import Delivered
    from examples.flights.stream import Place


class FakeProducer:
    """Holds at most `room` records that are not delivered; refuses all from the `refuse_at`th on, with an error.

    Each poll delivers one record, in the order given by `last_first`.
    """

    def __init__(self, room: int = 10, refuse_at: int | None = None, *, last_first: bool = False) -> None:
        self.delivered: list[Place] = []
        self.records: list[tuple[str, bytes, bytes, int]] = []
        self._room = room
        self._refuse_at = refuse_at
        self._last_first = last_first
        self._waiting: deque[tuple[Place, Delivered]] = deque()

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Delivered, timestamp: int) -> None:
        if len(self._waiting) >= self._room:
            raise BufferError
        self.records.append((topic, value, key, timestamp))
        event = orjson.loads(value)
        here = datetime.fromisoformat(event["ts"]), event["device_id"], event["event_id"]
        self._waiting.append((here, on_delivery))

    def poll(self, timeout: float) -> int:
        if not self._waiting or (self._last_first and timeout == 0 and len(self._waiting) < self._room):
            return 0
        here, on_delivery = self._waiting.pop() if self._last_first else self._waiting.popleft()
        if self._refuse_at is not None and len(self.delivered) >= self._refuse_at:
            on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT), None)  # noqa: SLF001  # librdkafka's own errors begin so
        else:
            self.delivered.append(here)
            on_delivery(None, None)
        return 1

    def flush(self, timeout: float) -> int:
        while self._waiting:
            self.poll(timeout)
        return 0
