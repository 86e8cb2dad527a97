"""Writes keys while they are read: at a steady rate, and one by one until a reader has them."""

import gc
import time
from array import array
from multiprocessing.synchronize import Event as Flag
from random import Random
from typing import NamedTuple

from bench.harness.errors import RunFailedError
from bench.harness.load import keyed
from bench.query.records import FIRST, TOPIC, checked, key, value
from bench.query.store_clients import StoreClient

SEED = 7
PAUSE_S = 0.001
RESERVED = 100
"""Keys, the first ones, that the probes update, and no other program does."""
WATCHED = range(90, RESERVED)
"""Those of them that are watched."""
BETWEEN_S = 0.02
PATIENCE_S = 10.0


class NotReceivedError(RunFailedError):
    """A record did not come within PATIENCE_S."""

    def __init__(self, number: int, version: int) -> None:
        super().__init__(f"version {version} of {key(number)} was not seen within {PATIENCE_S:g} s")


class Seen(NamedTuple):
    """Latencies in seconds, and the versions that the probed keys have now."""

    latencies: list[float]
    versions: dict[int, int]


def updating(boot: str, keys: int, rate: int, began: str, stop: Flag) -> dict[int, int]:
    """Update keys at random until the flag is set; return the versions of the updated keys."""
    gc.disable()
    random, versions, sent = Random(SEED), array("i", [FIRST]) * keys, 0  # noqa: S311  # a load keeps no secret
    made, start = keyed(boot, linger_ms=2), time.monotonic()
    touched: set[int] = set()
    while not stop.is_set():
        due = int((time.monotonic() - start) * rate)
        for _ in range(due - sent):
            number = random.randrange(RESERVED, keys)
            versions[number] += 1
            touched.add(number)
            made.produce(TOPIC, value(number, versions[number], began), key(number))
        sent = max(due, sent)
        made.poll(0)
        time.sleep(PAUSE_S)
    made.flush()
    return {number: versions[number] for number in touched}


def visible(boot: str, began: str, store_client: StoreClient, seconds: float) -> Seen:
    """Write a key and read it until the new version is there, again and again. Raises NotReceivedError."""
    made, random = keyed(boot, linger_ms=0), Random(1)  # noqa: S311  # a load keeps no secret
    versions, latencies = dict.fromkeys(range(WATCHED.start), FIRST), list[float]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0, 2 * BETWEEN_S))
        number = random.randrange(WATCHED.start)
        versions[number] += 1
        sent = time.monotonic()
        made.produce(TOPIC, value(number, versions[number], began), key(number))
        made.poll(0)
        while (checked(number, store_client.read(key(number)) or b"") or 0) < versions[number]:
            if time.monotonic() - sent > PATIENCE_S:
                raise NotReceivedError(number, versions[number])
        latencies.append(time.monotonic() - sent)
    made.flush()
    return Seen(latencies, versions)
