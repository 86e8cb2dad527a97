"""Reads the coverage of a key from its windows, a bounded number of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.model.state import MAX_WINDOWS
from services.query.lookup.coverage import Timeline, WindowCoverage, cover, steps_at
from services.query.lookup.problems import Problem, ProblemError
from services.query.store.buckets import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.model.named_state import CoverageField
    from services.query.lookup.coverage import CoveredSpan
    from services.query.lookup.state_reader import StateReader
    from services.query.store import Entry


class CoverageRequest(NamedTuple):
    """The range [start, end) of a key, in milliseconds since 1970.

    Without a start, the range begins with the key's oldest window. Without an end, it ends with the newest one, or with
    the present one if that is later. At most `limit` windows are
    read, in addition to those that overlap the start.
    """

    field: CoverageField
    start: int | None
    end: int | None
    limit: int


class CoveredRange(NamedTuple):
    """The intervals of [start, end). `next` is where the rest of the requested range starts; None: there is none.

    Before `final_until`, all windows are closed: these intervals change no more until their windows are forgotten. It
    is at the beginning of 1970 while no window is closed.
    """

    start: int
    end: int
    next: int | None
    final_until: int
    intervals: Sequence[CoveredSpan]


class CoverageReader:
    """Reads the coverage of the keys of one windowed state."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        state = reader.state
        self._fields = {one.path: one for one in state.coverage}
        self._window = 0 if state.window is None else milliseconds(state.window)
        self._every = self._window if state.every is None else milliseconds(state.every)

    def field(self, path: str | None) -> CoverageField:
        """The Coverage field at this path, or the only one. Raises ProblemError (400)."""
        known = ", ".join(self._fields) or "none: declare one with the reducer Coverage"
        if path is None and len(self._fields) == 1:
            return next(iter(self._fields.values()))
        if path not in self._fields:
            raise ProblemError(Problem("bad_request", f"field={path or ''}: fields with coverage are {known}"))
        return self._fields[path]

    def read(self, key: str, latest: Entry, request: CoverageRequest, now: int) -> CoveredRange:
        """The coverage of a key whose newest window is `latest`. Raises ProblemError (400) for an empty range."""
        timeline = self._timeline(latest, request.field, now)
        start, end = request.start, request.end
        if end is None:
            end = timeline.window_from(max(latest.window_start, timeline.now) + 1)
        if start is None:
            oldest = self._windows(key, None, None, 1)
            start = min(end, (oldest[0] if oldest else latest).window_start)
        if start > end:
            raise ProblemError(Problem("bad_request", "to: write a time after from"))
        first = start - self._every + 1
        overlapping = self._windows(key, start - self._window + 1, first, MAX_WINDOWS)
        windows, next_start = self._windows(key, first, end, request.limit + 1), None
        if len(windows) > request.limit:
            end = next_start = windows.pop().window_start
        path = request.field.path.split(".")
        covered = [WindowCoverage(one.window_start, steps_at(one.value, path)) for one in (*overlapping, *windows)]
        final_until = timeline.window_from(max(0, self._reader.windows.closed_before()))
        return CoveredRange(start, end, next_start, final_until, cover(covered, start, end, timeline))

    def _timeline(self, latest: Entry, field: CoverageField, now: int) -> Timeline:
        """The windows in time. In a replay, the time is that of the records."""
        store = self._reader.store
        time = now if self._reader.state.expires_by_clock else max(latest.event_time, store.watermark())
        step = field.step.total_seconds() * 1000
        timeline = Timeline(latest.window_start, self._window, self._every, step, 0, time)
        return timeline._replace(known_since=timeline.window_from(store.oldest_live_window()))

    def _windows(self, key: str, start: int | None, end: int | None, limit: int) -> list[Entry]:
        return list(self._reader.windows.windows(key, start=start, end=end, newest_first=False, limit=limit))
