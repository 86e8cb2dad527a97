"""Sends events to a topic, and knows up to which one all were delivered."""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from examples.flights.errors import DeliveryError, NoBrokerError, NoTopicError
from examples.flights.event import FlightEvent
from examples.flights.stream import Place, place

Delivered = Callable[[KafkaError | None, object], None]

CONNECT_S: Final = 10.0


class Producing(Protocol):
    """The part of confluent-kafka's Producer that a sender uses."""

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Delivered, timestamp: int) -> None:
        """Queue a record. Raises BufferError while the queue is full."""

    def poll(self, timeout: float) -> int:
        """Serve callbacks, waiting for the first."""

    def flush(self, timeout: float) -> int:
        """Wait until all is delivered or refused; how many are not yet."""


def connect(kafka: str, topic: str) -> Producer:
    """A producer for this topic. Raises NoBrokerError, NoTopicError."""
    producer = Producer(
        {
            "bootstrap.servers": kafka,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": "lz4",
            "log_level": 2,  # a broker that is away is tried again, and reported once, when it is too late
        }
    )
    try:
        topics = producer.list_topics(timeout=CONNECT_S).topics
    except KafkaException as error:
        raise NoBrokerError(kafka, error.args[0].str()) from error
    if topic not in topics:
        raise NoTopicError(topic, kafka)
    return producer


class Sender:
    """Sends events in order. `delivered` is the place up to which the broker has them all, None before the first."""

    def __init__(self, producer: Producing, topic: str) -> None:
        self.delivered: Place | None = None
        self.sent = 0
        self._producer = producer
        self._topic = topic
        self._failure: str | None = None
        self._order: deque[Place] = deque()
        self._confirmed: set[Place] = set()

    def offer(self, event: FlightEvent) -> bool:
        """Queue an event; False while the queue is full. Raises DeliveryError if an earlier one was refused."""
        here = place(event)

        def confirm(error: KafkaError | None, _: object) -> None:
            self._confirm(here, error)

        self.wait(0)
        value, key = orjson.dumps(event.model_dump(exclude_none=True)), event.device_id.encode()
        stamp = round(event.ts.timestamp() * 1000)
        try:
            self._producer.produce(self._topic, value, key, on_delivery=confirm, timestamp=stamp)
        except BufferError:
            return False
        self._order.append(here)
        self.sent += 1
        return True

    def wait(self, seconds: float) -> None:
        """Serve the deliveries, for at most so long. Raises DeliveryError."""
        self._producer.poll(seconds)
        self._check()

    def flush(self, seconds: float) -> bool:
        """Return whether all is delivered, waiting at most so long. Raises DeliveryError."""
        waiting = self._producer.flush(seconds)
        self._check()
        return waiting == 0

    def _check(self) -> None:
        if self._failure is not None:
            raise DeliveryError(self._topic, self._failure)

    def _confirm(self, here: Place, error: KafkaError | None) -> None:
        if error is not None:
            self._failure = self._failure or error.str()
            return
        self._confirmed.add(here)
        while self._order and self._order[0] in self._confirmed:
            self.delivered = self._order.popleft()
            self._confirmed.remove(self.delivered)
