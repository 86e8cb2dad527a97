"""Updates of keys at a steady rate, and what each key's version must be after them."""

from __future__ import annotations

import gc
import time
from array import array
from random import Random
from typing import TYPE_CHECKING

from bench.harness.load import keyed
from bench.query.records import FIRST, TOPIC, key, value

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event as Flag

SEED = 7
PAUSE_S = 0.001
RESERVED = 100
"""Keys, the first ones, that the probes update, and no other program does."""


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
