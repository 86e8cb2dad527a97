"""A job of a few lines: reads events until killed, writes snapshots; SPOIL names the mistake that it makes."""

from __future__ import annotations

import os
from typing import Any

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

SPOILT = 100
"""The number of the snapshot that it falsifies."""


def main() -> None:
    spoil, boot = os.environ["SPOIL"], os.environ["BOOT"]
    if spoil == "ends":
        return
    consumer = Consumer({"bootstrap.servers": boot, "group.id": "a job", "enable.auto.commit": False})
    consumer.assign([TopicPartition("events", partition, 0) for partition in (0, 1)])
    producer, states, written = Producer({"bootstrap.servers": boot}), dict[str, dict[str, Any]](), 0
    while True:
        for message in consumer.consume(1000, 0.1):
            event = orjson.loads(message.value() or b"")
            snapshot = merge(states.setdefault(event["device_id"], {}), event)
            written += 1
            for value in spoilt(snapshot, spoil) if written == SPOILT else [snapshot]:
                producer.produce("snapshots", orjson.dumps(value), event["device_id"])
        producer.flush()


def merge(state: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    temperature, events = event["temperature"], state.get("events", 0)
    state |= {
        "device_id": event["device_id"],
        "events": events + 1,
        "t_max": max(state.get("t_max", temperature), temperature),
        "t_avg": (state.get("t_avg", 0.0) * events + temperature) / (events + 1),
        "t_last": temperature,
        "last_ts": event["ts"],
    }
    return state


def spoilt(snapshot: dict[str, Any], spoil: str) -> list[dict[str, Any]]:
    ways = {"nothing": [snapshot], "repeats": [snapshot, snapshot], "lies": [snapshot | {"t_max": 1e6}]}
    return ways[spoil]


if __name__ == "__main__":
    main()
