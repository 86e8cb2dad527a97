"""Sends a chunk, and reads the blob until it has it, again and again."""

import time
from collections.abc import Sequence
from contextlib import suppress

import orjson

from bench.harness.load import keyed
from bench.harness.process import RunningJob
from bench.query.loop import Reads
from bench.vitals.chunks import TOPIC, SentChunk, pulse_of

PATIENTS = 20
"""Those that are read, one after the other. They are others than those of the load."""
BETWEEN_S = 0.05
PAUSE_S = 0.002
PATIENCE_S = 120.0
"""How long a chunk may take: the first one waits for the start of the job."""


class Probe:
    """Reads through one connection. The processes are those that must run meanwhile."""

    def __init__(self, boot: str, client: Reads, processes: Sequence[RunningJob]) -> None:
        self._producer = keyed(boot, linger_ms=0)
        self._client = client
        self._processes = processes
        self._turn = 0

    def read_for(self, seconds: float) -> list[float]:
        """Return how long each chunk took, in seconds, of at least one. Raises JobExitedError, JobStalledError."""
        took, end = [self._read()], time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(BETWEEN_S)
            took.append(self._read())
        return took

    def _read(self) -> float:
        """Send the next chunk; gives how long it took until a GET returned it."""
        self._turn += 1
        chunk, begun = SentChunk(f"probe{self._turn % PATIENTS}", int(time.time()) - 1), time.monotonic()
        self._producer.produce(TOPIC, chunk.encode(), chunk.patient)
        self._producer.flush()
        while not self._has(chunk):
            for one in self._processes:
                one.require_running()
            if time.monotonic() - begun > PATIENCE_S:
                raise self._processes[0].stalled(f"a blob with {chunk}", PATIENCE_S)
            time.sleep(PAUSE_S)
        return time.monotonic() - begun

    def _has(self, chunk: SentChunk) -> bool:
        start = chunk.blob_start.isoformat().replace("+00:00", "Z")
        with suppress(OSError):
            answer = self._client.read(f"{chunk.patient}?at={start}")
            return answer is not None and chunk.is_in(pulse_of(orjson.loads(answer)))
        return False
