"""A job of a few lines: counts events of each key in each hour until killed. It can count one too many.

Arguments: the broker, the prefix of its topics, `event` or `close`, and in which backlog it is wrong.
"""

from __future__ import annotations

import sys
from collections import Counter

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

SPOILT = 100
"""The number of the wrong count."""


def main(boot: str, prefix: str, emit: str, spoil: str) -> None:
    consumer = Consumer({"bootstrap.servers": boot, "group.id": "a count", "enable.auto.commit": False})
    consumer.assign([TopicPartition(f"{prefix}events", partition, 0) for partition in (0, 1)])
    producer, counts, published = Producer({"bootstrap.servers": boot}), Counter[tuple[str, str]](), 0
    ahead: dict[int, str] = {}
    while True:
        for message in consumer.consume(1000, 0.1):
            event = orjson.loads(message.value() or b"")
            hour = event["ts"][:13]
            counts[event["device_id"], hour] += 1
            ahead[message.partition() or 0] = hour
            if emit == "event":
                done = [(event["device_id"], hour)]
            else:
                before = min(ahead.values()) if len(ahead) == 2 else ""
                done = [window for window in counts if window[1] < before]
            for window in done:
                published += 1
                wrong = published == SPOILT and prefix.startswith(spoil)
                count = 10**9 if wrong else counts[window]
                value = {"key": window[0], "window_start": f"{window[1]}:00:00Z", "count": count}
                producer.produce(f"{prefix}snapshots", orjson.dumps(value), window[0])
                if emit == "close":
                    del counts[window]
        producer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
