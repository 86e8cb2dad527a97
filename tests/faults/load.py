"""Readings from a seed, and what a plain fold expects of them."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException

from services.runtime.kafka.options import create_producer
from tests.faults.application import app

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from confluent_kafka import KafkaError, Message

FLUSH_S = 300


class Traffic(NamedTuple):
    """How many events come, of how many meters."""

    rate: float
    """Events per second."""
    meters: int
    new_plates: float
    """The share of events with a new plate, which needs a call."""


USUAL = Traffic(rate=40, meters=16, new_plates=0.15)


class Sent(NamedTuple):
    """A record to send. One that `is_refused` must become a dead letter; one that is not gives nothing."""

    key: bytes | None
    value: bytes | None
    is_refused: bool = False


@dataclass
class Meter:
    """The fold of the events of a meter."""

    readings: int = 0
    total: int = 0
    plate: str | None = None

    def merge(self, value: int, plate: str | None) -> None:
        """Merge an event, later than all before."""
        self.readings, self.total, self.plate = self.readings + 1, self.total + value, plate or self.plate


@dataclass
class Load:
    """The events of one fault and seed. Its meters have the name of the run in theirs."""

    run: str
    seed: int
    meters: dict[str, Meter] = field(default_factory=dict)
    behind: timedelta = timedelta()
    """How far the clocks of the devices are behind."""
    hot: float = 0.0
    """The share of events of the first meter."""
    traffic: Traffic = USUAL
    sent: int = 0
    plates: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.run} {self.seed}")
        self.began = self._now()
        """The start of each window."""

    def events(self, is_over: threading.Event) -> Iterator[Sent]:
        """Return events at the rate, until it is over. What was delayed comes at once."""
        due = time.monotonic()
        while not is_over.wait(max(0.0, (due := due + 1 / self.traffic.rate) - time.monotonic())):
            yield self.event()

    def event(self) -> Sent:
        """Return the next event."""
        number = 0 if self.random.random() < self.hot else self.random.randrange(self.traffic.meters)
        is_new = self.random.random() < self.traffic.new_plates
        return self.event_of(f"{self.run}/{self.seed}/{number}", new_plate=is_new)

    def event_of(self, name: str, *, new_plate: bool) -> Sent:
        """Return the next event of a meter. Its first one has a plate."""
        meter = self.meters.setdefault(name, Meter())
        plate = f"{name.replace('/', '-')}-{meter.readings}" if new_plate or meter.plate is None else meter.plate
        value = self.random.randrange(1 << 30)
        meter.merge(value, plate)
        self.plates.add(plate)
        return self._encoded(name, value, plate)

    def bare(self, name: str) -> Sent:
        """Return the event of a meter that needs no call."""
        value = self.random.randrange(1 << 30)
        self.meters.setdefault(name, Meter()).merge(value, None)
        return self._encoded(name, value, None)

    def last(self) -> Iterator[Sent]:
        """Return one more event of each meter; every other one has a new plate, for an answer after the fault."""
        for number, name in enumerate(list(self.meters)):
            if self.meters[name].plate is not None:
                yield self.event_of(name, new_plate=number % 2 == 0)

    def _now(self) -> str:
        return (datetime.now(UTC) - self.behind).isoformat(timespec="microseconds")

    def _encoded(self, name: str, value: int, plate: str | None) -> Sent:
        self.sent += 1
        fields = {
            "device_id": name,
            "event_id": str(self.sent),
            "first_seen": self.began,
            "ts": self._now(),
            "value": value,
        }
        return Sent(name.encode(), json.dumps(fields | ({"plate": plate} if plate else {})).encode())


Place = tuple[str, int, int]
"""Topic, partition and offset."""


class Sender:
    """Sends records, in a thread or at once, and notes where those are that must be refused."""

    def __init__(self, kafka: str) -> None:
        options = {"bootstrap.servers": kafka, "message.timeout.ms": FLUSH_S * 1000, "linger.ms": 5}
        self._producer = create_producer(options, "faults")
        self.refused: set[Place] = set()
        self.failed: list[str] = []

    def send(self, record: Sent, topic: str = app.topics.events) -> None:
        """Send a record."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed.append(error.name())
            elif record.is_refused:
                self.refused.add((message.topic() or "", message.partition() or 0, message.offset() or 0))

        try:
            self._producer.produce(topic, record.value, record.key, on_delivery=delivered)
        except KafkaException as error:  # too large for the client
            self.failed.append(error.args[0].name())
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all records are acknowledged. Raises TimeoutError."""
        if self._producer.flush(FLUSH_S):
            raise TimeoutError("records are not acknowledged")
