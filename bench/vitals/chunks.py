"""The chunks of a steady load, and which blob must show each."""

import gc
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from multiprocessing.synchronize import Event as Flag
from typing import Any, NamedTuple

from bench.harness.load import keyed
from bench.vitals.application import blobs
from examples.vitals.chunk import PULSE, encoded
from examples.vitals.state import BLOB

TOPIC = blobs.raw[0].topic
BLOB_S = round(BLOB.total_seconds())
DIFFERENT = 997
PAUSE_S = 0.001


class SentChunk(NamedTuple):
    """The chunk of a second, since 1970, of a patient."""

    patient: str
    second: int

    @property
    def samples(self) -> list[int]:
        """Return the samples of the monitor. Neighbouring chunks of a patient have different samples."""
        first = self.second % DIFFERENT
        return [first + number for number in range(PULSE.rate)]

    @property
    def blob_start(self) -> datetime:
        """The start of the blob that it is in."""
        return datetime.fromtimestamp(self.second // BLOB_S * BLOB_S, UTC)

    def encode(self) -> bytes:
        """The chunk as the monitor sends it."""
        return encoded(datetime.fromtimestamp(self.second, UTC), "bench", PULSE, self.samples)

    def is_in(self, pulse: Sequence[int | None]) -> bool:
        """Whether a blob has the samples."""
        place = self.second % BLOB_S * PULSE.rate
        return list(pulse[place : place + PULSE.rate]) == self.samples


def chunks_of(patient: str, blob_start: str, pulse: Sequence[int | None]) -> list[SentChunk]:
    """The chunks of which a blob has at least one sample."""
    start = round(datetime.fromisoformat(blob_start).timestamp())
    present = [place for place in range(0, len(pulse), PULSE.rate) if pulse[place] is not None]
    return [SentChunk(patient, start + place // PULSE.rate) for place in present]


def steady_chunks(boot: str, patients: int, stop: Flag) -> dict[SentChunk, float]:
    """Send each patient's chunk of each second when it is over, at moments that are spread over the next second.

    Gives when each was sent, in seconds of the epoch.
    """
    gc.disable()  # a collection would be a pause of the load
    producer, sent, began = keyed(boot, linger_ms=0), dict[SentChunk, float](), int(time.time())
    while not stop.is_set():
        due = int((time.time() - began) * patients)
        while len(sent) < due:
            second, patient = divmod(len(sent), patients)
            chunk = SentChunk(f"p{patient}", began + second - 1)
            sent[chunk] = time.time()
            producer.produce(TOPIC, chunk.encode(), chunk.patient)
        producer.poll(0)
        time.sleep(PAUSE_S)
    producer.flush()
    return sent


def pulse_of(answer: dict[str, Any]) -> list[int | None]:
    """The samples of a blob, from the answer about it."""
    found: list[int | None] = answer["value"]["state"].get("pulse") or []
    return found
