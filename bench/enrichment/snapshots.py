"""The load: snapshots of as many vehicles, each of which calls for one request, or for none."""

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson

from bench.enrichment import application
from bench.enrichment.api import place
from contracts.planning.fingerprint import fingerprint

VERSION = 3


def device(number: int) -> str:
    """The name of the vehicle whose place has this number."""
    return f"vehicle-{number}"


def snapshots(count: int, *, answered: bool) -> Iterator[tuple[str, bytes]]:
    """Each one's device and value, as the job publishes them. An answered one has the answer to its inputs."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return ((device(number), _value(number, now, answered=answered)) for number in range(count))


def _value(number: int, now: str, *, answered: bool) -> bytes:
    snapshot = {
        "device_id": device(number),
        "first_seen": now,
        "version": VERSION,
        "as_of": now,
        "state": {
            "pings": VERSION,
            "speed": 10 + number % 20 / 2,
            "fastest": 25.5,
            "mean_speed": 12 + number % 70 / 8,
            "lat": 52 + number % 1000 / 1000,
            "lon": 13 + number % 997 / 997,
            "cell": number,
        },
        "enrichments": {"place": _answer(number, now)} if answered else {},
    }
    return orjson.dumps(snapshot)


def _answer(number: int, now: str) -> dict[str, object]:
    return {
        "version": VERSION - 1,
        "status": "result",
        "ts": now,
        "fingerprint": fingerprint(application.place, {"cell": number}),
        "result": place(number),
    }
