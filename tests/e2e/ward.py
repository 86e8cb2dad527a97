"""A ward that goes on whatever happens to the job: what it sends second by second, and the states of all that it sent.

Of each patient, a monitor sends a chunk of each second: some are lost, repeated or late, and it is off for a while now
and then. Nurses send direct events of the same patients at once.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import orjson

from examples.vitals.arrivals import LONGEST_DELAY, name, transmission
from examples.vitals.chunk import PULSE, encoded
from services.runtime.kafka.options import create_producer
from tests.e2e.monitors import Blob
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.loop import Loop

    WindowKey = tuple[str, datetime]
    Second = tuple[str, int]

BLOB_S = round(Blob.lifetime.total_seconds())
PATIENTS = [name(number) for number in range(100)]
SAMPLES = [0] * PULSE.rate
OFF, OFF_S = 0.15, 25
"""The share of the spans of this length in which a monitor is off: some windows have no chunk."""
NOTED = 0.1
"""The share of the patients that have a direct event in a second; the half of these events is repeated."""


class Ward:
    """The patients, and what was sent of them. `send` must be called more than once a second."""

    def __init__(self, loop: Loop, seed: int) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._numbers = count()
        self._producer = create_producer({"bootstrap.servers": loop.bootstrap}, "test")
        self._raw, self._events = f"{loop.prefix}waveforms", f"{loop.prefix}chunks"
        self.second = int(time.time())
        """What arrives until here is sent."""
        self.begin = self.second // BLOB_S * BLOB_S - BLOB_S
        """Before the first second of which something is sent."""
        self.chunks: Counter[Second] = Counter()
        self.notes: Counter[Second] = Counter()

    def send(self) -> None:
        """Send what arrives now. What would have arrived while this was not called is lost before it is sent."""
        if int(time.time()) == self.second:
            return
        self.second = int(time.time())
        for patient, measured in self._arrivals(self.second):
            chunk = encoded(datetime.fromtimestamp(measured, UTC), "monitor", PULSE, SAMPLES)
            self._producer.produce(self._raw, chunk, patient)
            self.chunks[patient, measured] += 1
        for patient in PATIENTS:
            if self._chance.random() < NOTED:
                self._note(patient)
        assert self._producer.flush(60) == 0

    def goes_on(self, seconds: float) -> None:
        """Wait until it has sent for so long."""
        end = self.second + seconds
        until(lambda: self.second >= end, f"{seconds} seconds of the ward")

    def states(self) -> dict[WindowKey, dict[str, Any]]:
        """The state of each window of which something was sent."""
        states: dict[WindowKey, dict[str, Any]] = defaultdict(lambda: {"events": 0, "chunks": 0, "covered": []})
        for (patient, second), number in sorted(self.chunks.items()):
            state = states[_window(patient, second)]
            state["events"] += number
            state["chunks"] += number
            _cover(state["covered"], second % BLOB_S)
        for window, number in self.notes.items():
            states[_window(*window)]["events"] += number
        return dict(states)

    def _arrivals(self, now: int) -> Iterator[tuple[str, int]]:
        """The chunks that arrive when this second begins: of a patient and the second that it covers."""
        for delay in range(LONGEST_DELAY + 1):
            measured = now - 1 - delay
            for number, patient in enumerate(PATIENTS):
                what = transmission(self._seed, PULSE, number, measured)
                if what.delay == delay and not self._is_off(patient, measured):
                    yield from [(patient, measured)] * what.count

    def _is_off(self, patient: str, second: int) -> bool:
        return random.Random(f"{self._seed}/{patient}/{second // OFF_S}").random() < OFF

    def _note(self, patient: str) -> None:
        now = time.time()
        ts = datetime.fromtimestamp(now, UTC).isoformat()
        event = {"event_id": f"note-{next(self._numbers)}", "patient": patient, "monitor": "nurse", "ts": ts}
        for _ in range(self._chance.choice([1, 2])):
            self._producer.produce(self._events, orjson.dumps(event), patient)
        self.notes[patient, int(now)] += 1


def _window(patient: str, second: int) -> WindowKey:
    return patient, datetime.fromtimestamp(second // BLOB_S * BLOB_S, UTC)


def _cover(spans: list[list[int]], step: int) -> None:
    if spans and spans[-1][1] == step:
        spans[-1][1] = step + 1
    else:
        spans.append([step, step + 1])


@contextmanager
def repeating(call: Callable[[], object], pause_s: float) -> Iterator[None]:
    """Call a function again and again, from a thread of its own. An error that it raises is raised at the end."""
    stopping, errors = Event(), []

    def run() -> None:
        while not stopping.wait(pause_s):
            try:
                call()
            except BaseException as error:  # noqa: BLE001  # also an AssertionError
                errors.append(error)
                return

    thread = Thread(target=run, name="repeating", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    for error in errors:
        raise error
