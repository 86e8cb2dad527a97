"""The content that every snapshot must have, computed without any of the jobs, and the comparison."""

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from bench.harness.jobs import Job
from bench.harness.load import SensorReading
from bench.harness.states import States


@dataclass
class OracleReport:
    """The result of a check: how many events gave a correct snapshot."""

    events: int
    snapshots: int = 0
    missing: int = 0
    """Events that gave no snapshot."""
    duplicates: int = 0
    wrong: int = 0
    """Snapshots with a wrong field; the device's count identifies each, so a wrong count is missing."""
    unknown: int = 0
    """Snapshots of no event, or that cannot be read."""
    example: str | None = None
    given: str = "events"
    gives: str = "snapshot"

    @property
    def right(self) -> bool:
        """Whether each event gave exactly one correct snapshot."""
        return not (self.missing or self.duplicates or self.wrong or self.unknown)

    def __str__(self) -> str:
        if self.right:
            return f"each of {self.events:,} {self.given} gave one correct {self.gives}"
        counts = ", ".join(f"{getattr(self, what):,} {what}" for what in ("missing", "duplicates", "wrong", "unknown"))
        return f"of {self.events:,} {self.given}: {counts}" + (f"; {self.example}" if self.example else "")


class Oracle:
    """The expected state after each reading. Readings of one device are added in the order in which they are sent."""

    def __init__(self, readings: Iterable[SensorReading]) -> None:
        self._states = States(readings)

    def check(self, snapshots: Iterable[bytes], job: Job) -> OracleReport:
        """Compare all that a job published with all that it should have.

        Each snapshot is compared; of a job that does not keep the order of events, the last of each device.
        """
        report, seen, reader = (
            OracleReport(events=len(self._states)),
            bytearray(len(self._states)),
            SnapshotDecoder(job),
        )
        for value in snapshots:
            report.snapshots += 1
            self._judge(value, reader.read(value), seen, report, in_order=job.in_order)
        report.missing = seen.count(0)
        return report

    def _judge(
        self, value: bytes, read: "DecodedSnapshot | None", seen: bytearray, report: OracleReport, *, in_order: bool
    ) -> None:
        place = self._states.place(read.device, read.events) if read else None
        if read is None or place is None:
            report.unknown += 1
            report.example = report.example or f"unknown: {value[:300]!r}"
            return
        report.duplicates += seen[place]
        seen[place] = 1
        if not in_order and not self._states.last(place):
            return
        expected = self._states.expected(place)
        if field := expected.differs(read.state):
            report.wrong += 1
            report.example = report.example or f"{field} should be as in {expected}: {value[:300]!r}"


class DecodedSnapshot(NamedTuple):
    """A snapshot: its device, how many of its events it holds, and its state."""

    device: str
    events: int
    state: dict[str, Any]


class SnapshotDecoder:
    """Reads a job's snapshots."""

    def __init__(self, job: Job) -> None:
        self._device = job.device.split(".")
        *self._state, self._count = job.count.split(".")

    def read(self, value: bytes) -> DecodedSnapshot | None:
        """A snapshot, or None if it is none."""
        try:
            snapshot = orjson.loads(value)
            state = functools.reduce(operator.getitem, self._state, snapshot)
            device = functools.reduce(operator.getitem, self._device, snapshot)
            return DecodedSnapshot(device, state[self._count], state) if isinstance(state[self._count], int) else None
        except (ValueError, LookupError, TypeError):
            return None
