"""Sends events of the past: each record has the time of its event."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from confluent_kafka import Producer


def replay(kafka: str, topic: str, events: Iterable[dict[str, Any]]) -> None:
    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})
    for event in sorted(events, key=lambda event: datetime.fromisoformat(event["ts"])):
        stamp = round(datetime.fromisoformat(event["ts"]).timestamp() * 1000)
        producer.produce(topic, key=event["device_id"], value=json.dumps(event), timestamp=stamp)
        if len(producer) >= 50_000:  # librdkafka queues 100,000 records
            producer.flush()
    producer.flush()
