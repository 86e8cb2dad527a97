"""The expected counts of keys in hours, and the check of the published ones."""

import functools
import operator
from array import array
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from bench.harness.load import SensorReading
from bench.harness.results import OracleReport
from bench.windows.jobs import WindowJob
from contracts import Emit

HOUR = timedelta(hours=1)


class PublishedCount(NamedTuple):
    """A count of a key in the hour that begins then."""

    key: str
    hour: datetime
    events: int


class WindowOracle:
    """The events of each key in each hour. The last hour is not over; the others are."""

    def __init__(self, readings: Iterable[SensorReading]) -> None:
        self._windows: dict[tuple[str, datetime], int] = {}
        self._counts = array("i")
        hours = dict[str, datetime]()
        for reading in readings:
            prefix = reading.ts[:13]
            hour = hours.get(prefix) or hours.setdefault(prefix, _hour(reading.ts))
            self._add(reading.device, hour)
        self._begins = array("i", accumulate(self._counts, initial=0))
        last = max(hours.values())
        self._closed = [index for (_, hour), index in self._windows.items() if hour != last]

    @property
    def events(self) -> int:
        """How many there are."""
        return self._begins[-1]

    def least(self, emit: Emit) -> int:
        """The fewest counts with which all have been published that must be."""
        return {Emit.EVENT: self.events, Emit.BATCH: len(self._windows), Emit.CLOSE: len(self._closed)}[emit]

    def check(self, values: Iterable[bytes], job: WindowJob) -> OracleReport:
        """Compare all that a job published: no count twice, none that is too large, and each window's last one.

        A job that publishes each event must publish all counts; one that publishes at the end, only the last ones.
        """
        windows = self._closed if job.emit is Emit.CLOSE else range(len(self._counts))
        report = OracleReport(events=len(windows), given="windows", gives="last count")
        seen, decoder = bytearray(self.events), CountDecoder(job)
        for value in values:
            report.snapshots += 1
            read = decoder.read(value)
            index = self._windows.get((read.key, read.hour)) if read else None
            if read is not None and index is not None and self._can_be(read.events, index, job.emit):
                place = self._begins[index] + read.events - 1
                report.duplicates += seen[place]
                seen[place] = 1
                continue
            report.unknown += index is None
            report.wrong += index is not None
            report.example = report.example or repr(value[:300])
        lasts = sum(not seen[self._begins[index + 1] - 1] for index in windows)
        report.missing = seen.count(0) if job.emit is Emit.EVENT else lasts
        return report

    def _can_be(self, count: int, index: int, emit: Emit) -> bool:
        last = self._counts[index]
        return count == last if emit is Emit.CLOSE else 0 < count <= last

    def _add(self, key: str, hour: datetime) -> None:
        index = self._windows.setdefault((key, hour), len(self._counts))
        if index == len(self._counts):
            self._counts.append(0)
        self._counts[index] += 1


class CountDecoder:
    """Reads a job's counts."""

    def __init__(self, job: WindowJob) -> None:
        self._key, self._start, self._count = (path.split(".") for path in (job.key, job.start, job.count))
        self._hours: dict[str, datetime] = {}

    def read(self, value: bytes) -> PublishedCount | None:
        """A count, or None if it is none."""
        try:
            document = orjson.loads(value)
            hour = self._hour(_at(document, self._start))
            return PublishedCount(_at(document, self._key), hour, int(_at(document, self._count)))
        except (ValueError, LookupError, TypeError):
            return None

    def _hour(self, start: str) -> datetime:
        """A time, once parsed: there are few. Raises ValueError, TypeError."""
        return self._hours.get(start) or self._hours.setdefault(start, datetime.fromisoformat(start))


def _at(document: object, path: list[str]) -> Any:
    return functools.reduce(operator.getitem, path, document)  # type: ignore[arg-type]  # whatever JSON holds


def _hour(ts: str) -> datetime:
    at = datetime.fromisoformat(ts)
    return at - timedelta(minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
