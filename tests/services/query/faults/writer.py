"""Writes snapshots as the job does: growing versions, and sometimes earlier ones again."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Self

from services.runtime.kafka.options import create_producer
from tests.services.query.faults.cars import snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

PAUSE_S = 0.02
AT_A_TIME = 20
REPLAYED = 0.05
NEW_WINDOW = 0.002


class Writer:
    """A thread that writes inside `with`, also after the broker was down; the exit waits for all deliveries."""

    def __init__(self, bootstrap: str, topic: str, keys: Sequence[str], seed: int = 1) -> None:
        self._topic = topic
        self._keys = keys
        self._rng = random.Random(seed)
        self._producer = create_producer(
            {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, "linger.ms": 1}, "test"
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self.written = dict.fromkeys(keys, (0, 0))
        """The minute of the window and the version that were written last, by key."""

    def once(self) -> None:
        """Write a first version of each key."""
        for key in self._keys:
            self._next(key)
        assert self._producer.flush(60) == 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _write(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            for key in self._rng.sample(self._keys, AT_A_TIME):
                if self._rng.random() < REPLAYED:
                    self._again(key)
                else:
                    self._next(key)
            self._producer.poll(0)

    def _next(self, key: str) -> None:
        minute, version = self.written[key]
        self.written[key] = (minute + 1, 1) if self._rng.random() < NEW_WINDOW else (minute, version + 1)
        self._produce(key, *self.written[key])

    def _again(self, key: str) -> None:
        """Write the last few versions again, as a sink does after a restart from its checkpoint."""
        minute, version = self.written[key]
        for earlier in range(max(1, version - 5), version + 1):
            self._produce(key, minute, earlier)

    def _produce(self, key: str, minute: int, version: int) -> None:
        self._producer.produce(self._topic, snapshot(key, version, minute), key)
