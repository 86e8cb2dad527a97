"""A worker of a few lines, with a call at a time for each snapshot; SPOIL selects its fault."""

from __future__ import annotations

import http.client
import os
from urllib.parse import urlsplit

import orjson
from confluent_kafka import Consumer, Message, Producer

SPOILT = 5
"""The vehicle whose answer it falsifies."""


def main() -> None:
    spoil, boot = os.environ["SPOIL"], os.environ["BOOT"]
    consumer = Consumer(
        {
            "bootstrap.servers": boot,
            "group.id": os.environ["GROUP"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
        }
    )
    consumer.subscribe(["snapshots"])
    producer = Producer({"bootstrap.servers": boot})
    api = http.client.HTTPConnection(urlsplit(os.environ["API"]).netloc)
    while True:
        for message in consumer.consume(10, 0.1):
            answer(message, producer, api, spoil)
            producer.flush()
            if spoil != "keeps":
                consumer.commit(message=message, asynchronous=False)


def answer(message: Message, producer: Producer, api: http.client.HTTPConnection, spoil: str) -> None:
    snapshot = orjson.loads(message.value() or b"")
    if snapshot["enrichments"]:
        return
    cell = snapshot["state"]["cell"]
    for _ in range(2 if spoil == "repeats" and cell == SPOILT else 1):
        api.request("GET", f"/places/{cell}")
        place = orjson.loads(api.getresponse().read())
        if spoil == "lies" and cell == SPOILT:
            place["name"] = "Elsewhere"
        produced = snapshot | {"enrichment": "place", "status": "result", "result": {"place": place}}
        producer.produce("feedback", orjson.dumps(produced), snapshot["device_id"])


if __name__ == "__main__":
    main()
