"""Updates of keys at a steady rate, and what each key's version must be after them."""

from __future__ import annotations

import gc
import time
from array import array
from random import Random
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from bench.query.records import FIRST, TOPIC, key, value
from contracts.topics import PARTITIONER

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event as Flag

SEED = 7
PAUSE_S = 0.001
RESERVED = 100
"""Keys, the first ones, that the probes update: nobody else does."""


def updating(boot: str, keys: int, rate: int, began: str, stop: Flag) -> dict[int, int]:
    """Update keys at random until told to stop; gives the versions of those that were."""
    gc.disable()
    random, versions, sent = Random(SEED), array("i", [FIRST]) * keys, 0  # noqa: S311  # a load keeps no secret
    made, start = producer(boot, linger_ms=2), time.monotonic()
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


def producer(boot: str, linger_ms: int) -> Producer:
    """One that puts keys where the job does."""
    return Producer(
        {
            "bootstrap.servers": boot,
            "partitioner": PARTITIONER,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
