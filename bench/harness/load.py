"""The load: readings of devices, sent all at once or at a steady rate."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from multiprocessing.synchronize import Event as Flag
from random import Random
from typing import NamedTuple

import orjson
from confluent_kafka import Producer

from bench.harness.topics import EVENTS
from contracts.model.topics import PARTITIONER

SEED = 7
STEP_S = 1e-4
"""Between the times of two readings that are sent all at once."""
IN_ORDER: dict[str, str | int | bool] = {
    "partitioner": PARTITIONER,
    # Without it a record that is sent again comes behind those sent after it, and a right snapshot looks wrong.
    "enable.idempotence": True,
    "queue.buffering.max.messages": 1_000_000,
}
"""How a device's readings all come to one partition, in the order in which they were taken."""
SAY_EVERY = 10_000
NOW = 0
"""A record's time, if it is the producer's clock's."""
PAUSE_S = 0.0005
Record = tuple[str, bytes] | tuple[str, bytes, int]
"""A key, a value and, if it is not the producer's clock's, the time in milliseconds of the epoch."""


class SensorReading(NamedTuple):
    """One event, the `number`th of its device. Times are as on the wire."""

    device: str
    number: int
    first_seen: str
    ts: str
    temperature: float

    def encode(self) -> bytes:
        """The event as it is sent."""
        event = {
            "device_id": self.device,
            "event_id": f"{self.device}-{self.number}",
            "first_seen": self.first_seen,
            "ts": self.ts,
            "attrs": {"a": "b"},
            "temperature": self.temperature,
        }
        return orjson.dumps(event)


class Sent(NamedTuple):
    """A reading, when it was handed to the client, and when it should have been; in seconds of the epoch."""

    reading: SensorReading
    at: float
    due: float


class Fleet:
    """Devices that take turns at random. The same seed gives the same turns and temperatures."""

    def __init__(self, devices: int) -> None:
        self._random = Random(SEED)  # noqa: S311  # a load keeps no secret
        self._numbers = [0] * devices
        self._first_seen = [""] * devices

    def reading(self, at: float) -> SensorReading:
        """The next reading, taken at this time."""
        index = self._random.randrange(len(self._numbers))
        ts = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")
        self._numbers[index] += 1
        self._first_seen[index] = self._first_seen[index] or ts
        temperature = self._random.gauss(20, 5)
        return SensorReading(f"d{index}", self._numbers[index], self._first_seen[index], ts, temperature)


def readings(count: int, devices: int, end: float, step_s: float = STEP_S) -> Iterator[SensorReading]:
    """Return `count` readings, one each step, the last of them taken at `end`."""
    fleet, begin = Fleet(devices), end - count * step_s
    return (fleet.reading(begin + index * step_s) for index in range(count))


def preload(boot: str, topic: str, load: Iterable[Record], report: Callable[[str], None]) -> None:
    """Send everything as fast as possible."""
    producer = keyed(boot, linger_ms=20)
    for index, record in enumerate(load):
        _send(producer, topic, *record)
        if index % SAY_EVERY == 0:
            report(f"sent {index:,} records to {topic}")
    producer.flush()


def steady(boot: str, rate: int, fleet: Fleet, stop: Flag) -> list[Sent]:
    """Send `rate` readings a second of these devices until the flag is set; those that are late are sent at once."""
    gc.disable()  # a collection would be a pause of the load
    producer, sent = keyed(boot, linger_ms=1), list[Sent]()
    began = time.time()
    while not stop.is_set():
        due = int((time.time() - began) * rate) + 1
        while len(sent) < due:
            reading = fleet.reading(time.time())
            at = time.time()
            _send(producer, EVENTS, reading.device, reading.encode())
            sent.append(Sent(reading, at, began + len(sent) / rate))
        producer.poll(0)
        time.sleep(PAUSE_S)
    producer.flush()
    return sent


def keyed(boot: str, linger_ms: int) -> Producer:
    """A producer that puts keys where the job does, and keeps each key's records in order."""
    return Producer({"bootstrap.servers": boot, "linger.ms": linger_ms, **IN_ORDER})


def _send(producer: Producer, topic: str, key: str, value: bytes, stamp: int = NOW) -> None:
    while True:
        try:
            producer.produce(topic, value, key, timestamp=stamp)
        except BufferError:
            producer.poll(0.01)
        else:
            return
