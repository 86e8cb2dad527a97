"""What every snapshot must say, computed without any of the jobs, and whether they say it."""

import functools
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from bench.harness.jobs import Job
from bench.harness.load import Reading

TOLERANCE = 1e-9
"""Of a mean: the order of additions is the job's."""
MILLISECONDS = len("2026-01-01T00:00:00.000")
"""Times are compared so far: Spark writes no more by itself."""


class Expected(NamedTuple):
    """The state of a device after one of its readings."""

    t_max: float
    t_avg: float
    t_last: float
    last_ts: str

    def differs(self, state: dict[str, Any]) -> str | None:
        """The first field that is wrong."""
        if state.get("t_max") != self.t_max:
            return "t_max"
        if not _near(state.get("t_avg"), self.t_avg):
            return "t_avg"
        if state.get("t_last") != self.t_last:
            return "t_last"
        written = state.get("last_ts")
        right = isinstance(written, str) and written[:MILLISECONDS] == self.last_ts[:MILLISECONDS]
        return None if right else "last_ts"


@dataclass
class Verdict:
    """What became of the events."""

    events: int
    snapshots: int = 0
    missing: int = 0
    """Events that gave no snapshot."""
    duplicates: int = 0
    wrong: int = 0
    """Snapshots with a wrong field; the device's count is what tells one from the next, so a wrong count is missing."""
    unknown: int = 0
    """Snapshots of no event, or that cannot be read."""
    example: str | None = None

    @property
    def right(self) -> bool:
        """Whether each event gave exactly one correct snapshot."""
        return not (self.missing or self.duplicates or self.wrong or self.unknown)

    def __str__(self) -> str:
        if self.right:
            return f"each of {self.events:,} events gave one correct snapshot"
        counts = ", ".join(f"{getattr(self, what):,} {what}" for what in ("missing", "duplicates", "wrong", "unknown"))
        return f"of {self.events:,} events: {counts}" + (f"; {self.example}" if self.example else "")


class Oracle:
    """The expected state after each reading. Readings of one device are added in the order in which they are sent."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._states: dict[str, list[Expected]] = {}
        for reading in readings:
            states = self._states.setdefault(reading.device, [])
            states.append(_merged(states, reading))

    def check(self, snapshots: Iterable[bytes], job: Job) -> Verdict:
        """Compare all that a job published with all that it should have.

        Each snapshot is compared; of a job that does not keep the order of events, the last of each device.
        """
        verdict = Verdict(events=sum(len(states) for states in self._states.values()))
        seen = {device: bytearray(len(states)) for device, states in self._states.items()}
        reader = Reader(job)
        for value in snapshots:
            verdict.snapshots += 1
            self._judge(value, reader.read(value), seen, verdict, in_order=job.in_order)
        verdict.missing = sum(times.count(0) for times in seen.values())
        return verdict

    def _judge(
        self, value: bytes, read: "Read | None", seen: dict[str, bytearray], verdict: Verdict, *, in_order: bool
    ) -> None:
        states = self._states.get(read.device, []) if read else []
        if read is None or not 0 < read.events <= len(states):
            verdict.unknown += 1
            verdict.example = verdict.example or f"unknown: {value[:300]!r}"
            return
        times = seen[read.device]
        if times[read.events - 1]:
            verdict.duplicates += 1
        times[read.events - 1] = 1
        known = in_order or read.events == len(states)
        field = states[read.events - 1].differs(read.state) if known else None
        if field:
            verdict.wrong += 1
            verdict.example = verdict.example or f"{field} should be as in {states[read.events - 1]}: {value[:300]!r}"


class Read(NamedTuple):
    """A snapshot: its device, how many of its events it holds, and its state."""

    device: str
    events: int
    state: dict[str, Any]


class Reader:
    """Reads a job's snapshots."""

    def __init__(self, job: Job) -> None:
        self._device = job.device.split(".")
        *self._state, self._count = job.count.split(".")

    def read(self, value: bytes) -> Read | None:
        """A snapshot, or None if it is none."""
        try:
            snapshot = orjson.loads(value)
            state = functools.reduce(operator.getitem, self._state, snapshot)
            device = functools.reduce(operator.getitem, self._device, snapshot)
            return Read(device, state[self._count], state) if isinstance(state[self._count], int) else None
        except (ValueError, LookupError, TypeError):
            return None


def _merged(states: list[Expected], reading: Reading) -> Expected:
    new = reading.temperature
    if not states:
        return Expected(new, new, new, reading.ts)
    before, count = states[-1], len(states)
    last = new if reading.ts >= before.last_ts else before.t_last
    mean = before.t_avg + (new - before.t_avg) / (count + 1)
    return Expected(max(before.t_max, new), mean, last, max(before.last_ts, reading.ts))


def _near(value: object, expected: float) -> bool:
    return isinstance(value, float | int) and math.isclose(value, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
