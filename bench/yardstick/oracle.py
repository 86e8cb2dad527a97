"""The content that every snapshot must have, computed without any of the jobs, and the comparison."""

import functools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from bench.harness.load import SensorReading
from bench.harness.results import OracleReport
from bench.yardstick.jobs import StateJob
from bench.yardstick.states import States


class Oracle:
    """The expected state after each reading. Readings of one device are added in the order in which they are sent."""

    def __init__(self, readings: Iterable[SensorReading]) -> None:
        self._states = States(readings)

    def check(self, snapshots: Iterable[bytes], job: StateJob) -> OracleReport:
        """Compare all that a job published with all that it should have.

        Each snapshot is compared; of a job that does not keep the order of events, the last of each device.
        """
        report, seen = OracleReport(events=len(self._states)), bytearray(len(self._states))
        reader = SnapshotDecoder(job.count)
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
    """Reads snapshots."""

    def __init__(self, count: str) -> None:
        """`count` is the path of the count of events, with dots."""
        *self._state, self._count = count.split(".")

    def read(self, value: bytes) -> DecodedSnapshot | None:
        """A snapshot, or None if it is none."""
        try:
            snapshot = orjson.loads(value)
            state = functools.reduce(operator.getitem, self._state, snapshot)
            events = state[self._count]
            return DecodedSnapshot(snapshot["device_id"], events, state) if isinstance(events, int) else None
        except (ValueError, LookupError, TypeError):
            return None
