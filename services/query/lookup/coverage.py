"""The coverage of a time range: where a key has data, gaps, and time that has not passed yet. Pure functions.

Times are in milliseconds since 1970.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence


class CoverageKind(StrEnum):
    """The kind of an interval."""

    DATA = "data"
    GAP = "gap"
    OPEN = "open"
    UNKNOWN = "unknown"


class CoveredSpan(NamedTuple):
    """A half-open interval of time."""

    kind: CoverageKind
    start: int
    end: int


class WindowCoverage(NamedTuple):
    """The steps of one window that have data, as half-open pairs in ascending order; None if the window has no list."""

    window_start: int
    steps: Sequence[tuple[int, int]] | None


class Timeline(NamedTuple):
    """The windows of a key in time: they have this size, and one starts every so often.

    `origin` is the start of any window. Windows from `known_since` on are remembered. Time before `now` has passed.
    """

    origin: int
    size: int
    every: int
    step: float
    known_since: int
    now: int

    @property
    def passed(self) -> int:
        """The end of the last step that has passed completely, by the steps of the newest window."""
        into_window = (self.now - self.origin) % self.every
        return self.now - into_window + min(self.every, self.step_at(int(into_window // self.step)))

    def step_at(self, number: int) -> int:
        """The start of a step, from the start of its window."""
        return min(round(number * self.step), self.size)

    def window_from(self, time: int) -> int:
        """The start of the first window that starts at this time or later."""
        return time + (self.origin - time) % self.every


def cover(windows: Sequence[WindowCoverage], start: int, end: int, timeline: Timeline) -> list[CoveredSpan]:
    """Divide [start, end) into intervals. `windows` are those that overlap the range, in ascending order.

    Where windows overlap, a time has data if any of them has, and is unknown if the newest one has no list.
    """
    passed, bounds = timeline.passed, [(CoverageKind.UNKNOWN, timeline.known_since)]
    spans: list[tuple[int, int]] = []
    for at, steps in windows:
        if steps is None:
            bounds.append((CoverageKind.GAP, min(at, passed)))
            bounds.append((CoverageKind.UNKNOWN, min(at + timeline.every, passed)))
        spans += [(at + timeline.step_at(first), at + timeline.step_at(last)) for first, last in steps or ()]
    found = _Intervals(start, end, [*bounds, (CoverageKind.GAP, passed), (CoverageKind.OPEN, end)])
    for span_start, span_end in sorted(spans):
        found.add_absent(span_start)
        found.add(CoverageKind.DATA, span_end)
    found.add_absent(end)
    return found.intervals


def steps_at(value: bytes, path: Sequence[str]) -> Sequence[tuple[int, int]] | None:
    """The list of covered steps at a path of a record; None if the record has none there."""
    found = orjson.loads(value)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list) or not all(map(_is_pair, found)):
        return None
    return sorted((first, last) for first, last in found)


def _is_pair(value: object) -> bool:
    match value:
        case [int(first), int(last)]:
            return 0 <= first < last
    return False


class _Intervals:
    """Intervals that follow each other without holes. Those of the same kind are merged.

    `absent` has the kinds of time without data, each up to a bound, the bounds in ascending order.
    """

    def __init__(self, start: int, end: int, absent: Sequence[tuple[CoverageKind, int]]) -> None:
        self.intervals: list[CoveredSpan] = []
        self._at = start
        self._end = end
        self._absent = absent
        self._number = 0

    def add_absent(self, until: int) -> None:
        """Add the time until then, which has no data."""
        until = min(until, self._end)
        while self._at < until:
            kind, bound = self._absent[self._number]
            self.add(kind, min(until, bound))
            if bound <= self._at:
                self._number += 1

    def add(self, kind: CoverageKind, until: int) -> None:
        """Add the time until then, within the range."""
        until = min(until, self._end)
        if until <= self._at:
            return
        if self.intervals and self.intervals[-1].kind is kind:
            self.intervals[-1] = self.intervals[-1]._replace(end=until)
        else:
            self.intervals.append(CoveredSpan(kind, self._at, until))
        self._at = until
