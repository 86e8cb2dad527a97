"""The expected state of each device after each of its readings, in some 250 bytes for each."""

import math
from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from bench.harness.load import SensorReading

TOLERANCE = 1e-9
"""The tolerance of a mean: the order of additions is the job's."""
MILLISECONDS = len("2026-01-01T00:00:00.000")
"""Times are compared so far: Spark writes no more by itself."""


class Expected(NamedTuple):
    """The state of a device after one of its readings."""

    t_max: float
    t_avg: float
    t_last: float
    last_ts: str

    def merged(self, reading: SensorReading, count: int) -> "Expected":
        """The state after one more reading; `count` is how many there were."""
        new = reading.temperature
        last = new if reading.ts >= self.last_ts else self.t_last
        mean = self.t_avg + (new - self.t_avg) / (count + 1)
        return Expected(max(self.t_max, new), mean, last, max(self.last_ts, reading.ts))

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


class States:
    """The states after all of these readings. Those of one device are added in the order in which they are sent.

    Columns in the order of readings; a device's are found through one more, in which they are side by side.
    """

    def __init__(self, readings: Iterable[SensorReading]) -> None:
        self._devices: dict[str, int] = {}
        self._counts, self._last, self._of = array("i"), array("i"), array("i")
        self._t_max, self._t_avg, self._t_last = array("d"), array("d"), array("d")
        self._last_ts: list[str] = []
        for reading in readings:
            self._add(reading)
        self._begins = array("i", accumulate(self._counts, initial=0))
        self._rows = self._by_device()

    def __len__(self) -> int:
        return len(self._of)

    def place(self, device: object, number: int) -> int | None:
        """Return the index of the state after a device's reading of this number, from 0; None without one."""
        index = self._devices.get(device) if isinstance(device, str) else None
        if index is None or not 0 < number <= self._counts[index]:
            return None
        return self._begins[index] + number - 1

    def last(self, place: int) -> bool:
        """Return whether no later reading of its device follows."""
        return self._last[self._of[self._rows[place]]] == self._rows[place]

    def expected(self, place: int) -> Expected:
        """The state there."""
        return self._row(self._rows[place])

    def _row(self, row: int) -> Expected:
        return Expected(self._t_max[row], self._t_avg[row], self._t_last[row], self._last_ts[row])

    def _add(self, reading: SensorReading) -> None:
        row, device = len(self), self._devices.setdefault(reading.device, len(self._devices))
        if device == len(self._counts):
            self._counts.append(0)
            self._last.append(row)
            state = Expected(reading.temperature, reading.temperature, reading.temperature, reading.ts)
        else:
            state = self._row(self._last[device]).merged(reading, self._counts[device])
        self._counts[device] += 1
        self._last[device] = row
        self._of.append(device)
        self._t_max.append(state.t_max)
        self._t_avg.append(state.t_avg)
        self._t_last.append(state.t_last)
        self._last_ts.append(state.last_ts)

    def _by_device(self) -> "array[int]":
        """The rows, a device's side by side and in order."""
        rows, free = array("i", bytes(self._of.itemsize * len(self))), self._begins[:]
        for row, device in enumerate(self._of):
            rows[free[device]] = row
            free[device] += 1
        return rows


def _near(value: object, expected: float) -> bool:
    return isinstance(value, float | int) and math.isclose(value, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
