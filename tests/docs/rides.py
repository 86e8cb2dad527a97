"""Sends the measurements of a scooter, and follows its snapshots."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, Producer


def ping(kafka: str, scooter: str, ride: datetime, *, topic: str = "events", **measured: float) -> None:
    now = datetime.now(UTC).isoformat()  # with an offset: a time without one is refused
    event = {"device_id": scooter, "event_id": now, "first_seen": ride.isoformat(), "ts": now, **measured}
    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})
    producer.produce(topic, key=scooter, value=json.dumps(event))
    producer.flush()


def follow(kafka: str, group: str, *, topic: str = "snapshots") -> Iterator[dict[str, Any]]:
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    newest: dict[str, tuple[str, int, int]] = {}  # by device: start of the window, epoch, and version in both
    while True:
        message = consumer.poll(1.0)
        if message is None or message.error() or (value := message.value()) is None:
            continue
        snapshot = json.loads(value)
        order = snapshot["first_seen"], snapshot.get("epoch", 0), snapshot["version"]
        if order > newest.get(snapshot["device_id"], ("", 0, 0)):  # else older, or published again after a crash
            newest[snapshot["device_id"]] = order
            yield snapshot
