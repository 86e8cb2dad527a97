"""Sends a reading of each device every second: `python -m myproject.source`. Ctrl-C and SIGTERM end it."""

import json
import math
import signal
import sys
from datetime import UTC, datetime
from threading import Event as Flag

from confluent_kafka import Producer

from myproject.application import Reading, app
from stateloop import StateloopError
from stateloop.settings import KafkaSettings, read

SITES = ("north", "south", "harbour")
DEVICES = {f"device-{number}": SITES[number % len(SITES)] for number in range(10)}
EVERY_S = 1.0
FLUSH_S = 10.0


def reading(device: str, now: datetime) -> Reading:
    """Return what a device measures. All readings of a day have the same `first_seen`: they are of one state."""
    phase = [*DEVICES].index(device)
    return Reading(
        device_id=device,
        event_id=now.isoformat(),
        first_seen=now.replace(hour=0, minute=0, second=0, microsecond=0),
        ts=now,
        temperature=round(5 + 2 * math.sin(now.timestamp() / 30 + phase), 1),
        site=DEVICES[device],
    )


def send(producer: Producer, now: datetime) -> None:
    """Send a reading of each device, with the device as the key of the record."""
    for device in DEVICES:
        producer.produce(app.topics.events, reading(device, now).model_dump_json().encode(), device.encode())
    producer.poll(0)


def main() -> None:
    """Send until stopped; or exit with 1 after one line with the remedy."""
    stopped = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        settings = read(KafkaSettings)
    except StateloopError as error:
        sys.exit(f"stateloop source: {error}")
    # The partitioner of Java: else the job looks for a device in another partition.
    options = {"partitioner": "murmur2_random", "enable.idempotence": True}
    producer = Producer({**settings.client(), **options})
    started = {"kafka": settings.kafka, "devices": len(DEVICES)}
    sys.stderr.write(f"stateloop source: {json.dumps(started)}\n")  # `make up` waits for it
    sent = 0
    while not stopped.wait(EVERY_S):
        send(producer, datetime.now(UTC))
        sent += len(DEVICES)
    ended = {"sent": sent, "unacknowledged": producer.flush(FLUSH_S)}
    sys.stderr.write(f"stateloop source: {json.dumps(ended)}\n")


if __name__ == "__main__":
    main()
