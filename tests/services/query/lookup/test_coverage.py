"""The coverage of a range equals a plain bitmap, for any events, windows, range and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import groupby, pairwise
from typing import NamedTuple

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contracts import Coverage
from services.query.lookup.coverage import CoverageKind, CoveredSpan, Timeline, WindowCoverage, cover, steps_at

EPOCH, MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
SPAN = 60
"""Events and ranges are within these milliseconds."""


class Scene(NamedTuple):
    """Windows of `size` that start every `every`, with steps; `forgotten` ones have no list of steps.

    An event is in the windows that contain its time, and covers these up to its end.
    """

    every: int
    overlap: int
    step: int
    origin: int
    known_since: int
    now: int
    events: frozenset[tuple[int, int]]
    forgotten: frozenset[int]

    @property
    def size(self) -> int:
        return self.every * self.overlap

    @property
    def timeline(self) -> Timeline:
        return Timeline(self.origin, self.size, self.every, self.step, self.first_known, self.now)

    @property
    def first_known(self) -> int:
        return next(start for start in self.starts if start >= self.known_since)

    @property
    def starts(self) -> range:
        """Return the starts of windows, from long before the range to long after it."""
        first = self.origin % self.every - self.every * (2 * SPAN // self.every)
        return range(first, 3 * SPAN, self.every)

    def covered(self, start: int) -> set[int] | None:
        """Return the steps with data of the window that starts then; None if it has no list."""
        if not self.is_stored(start):
            return set()
        if start % 7 in self.forgotten:
            return None
        spans = [range(time, min(end, start + self.size)) for time, end in self.events_of(start)]
        return {(one - start) // self.step for span in spans for one in span}

    def is_stored(self, start: int) -> bool:
        """Return whether the store has the window: it has an event, and is remembered."""
        return start >= self.first_known and bool(self.events_of(start))

    def events_of(self, start: int) -> list[tuple[int, int]]:
        return [event for event in self.events if start <= event[0] < start + self.size]

    def windows(self) -> list[WindowCoverage]:
        """Return the windows that a store has."""
        found = []
        for start in filter(self.is_stored, self.starts):
            steps = self.covered(start)
            found.append(WindowCoverage(start, None if steps is None else self.reduced(start)))
        return found

    def reduced(self, start: int) -> list[tuple[int, int]]:
        """Return the value of the field, as the job computes it."""
        reducer = Coverage(step=self.step * MILLISECOND, unit=MILLISECOND).within(self.size * MILLISECOND)
        lifted = [
            reducer.lift(end - time, EPOCH + time * MILLISECOND, EPOCH + start * MILLISECOND)
            for time, end in self.events_of(start)
        ]
        return [(first, last) for first, last in reducer.present(reduce(reducer.merge, lifted))]

    def kind_at(self, time: int) -> CoverageKind:
        """Return the kind of a millisecond, by checking each window that contains it."""
        newest = self.starts[(time - self.starts[0]) // self.every]
        if newest < self.first_known:
            return CoverageKind.UNKNOWN
        for number in range(self.overlap):
            start = newest - number * self.every
            if (time - start) // self.step in (self.covered(start) or ()):
                return CoverageKind.DATA
        step_end = min(((time - newest) // self.step + 1) * self.step, self.every)
        if newest + step_end > self.now:
            return CoverageKind.OPEN
        return CoverageKind.UNKNOWN if self.covered(newest) is None else CoverageKind.GAP


scenes = st.builds(
    Scene,
    every=st.integers(1, 30),
    overlap=st.integers(1, 4),
    step=st.integers(1, 15),
    origin=st.integers(-100, 100),
    known_since=st.integers(-50, SPAN),
    now=st.integers(-20, SPAN + 20),
    events=st.frozensets(
        st.tuples(st.integers(-SPAN, 2 * SPAN), st.integers(1, 20)).map(lambda one: (one[0], sum(one))), max_size=20
    ),
    forgotten=st.frozensets(st.integers(0, 6), max_size=2),
)


@given(scenes, st.integers(0, SPAN), st.integers(0, SPAN))
@example(Scene(10, 1, 4, 0, 0, 25, frozenset({(3, 4), (9, 12), (27, 28)}), frozenset()), 0, 40)
def test_every_millisecond_equals_the_bitmap(scene: Scene, start: int, size: int) -> None:
    found = cover(scene.windows(), start, start + size, scene.timeline)
    bitmap = [scene.kind_at(time) for time in range(start, start + size)]
    times = iter(range(start, start + size))
    runs = [(kind, [next(times) for _ in run]) for kind, run in groupby(bitmap)]
    assert found == [CoveredSpan(kind, run[0], run[-1] + 1) for kind, run in runs]
    assert all(one.end == other.start and one.kind != other.kind for one, other in pairwise(found))


@given(scenes, st.lists(st.integers(0, SPAN), min_size=2, max_size=5))
def test_the_parts_of_a_range_add_up_to_the_range(scene: Scene, bounds: list[int]) -> None:
    bounds.sort()
    windows = scene.windows()
    parts = [one for start, end in pairwise(bounds) for one in cover(windows, start, end, scene.timeline)]
    assert sum(part.end - part.start for part in parts) == bounds[-1] - bounds[0]
    whole = cover(windows, bounds[0], bounds[-1], scene.timeline)
    assert [kind for kind, _ in groupby(parts, key=lambda one: one.kind)] == [one.kind for one in whole]


def test_steps_of_a_fraction_of_a_millisecond_do_not_drift() -> None:
    timeline = Timeline(0, 3_600_000, 3_600_000, 1000 / 3, 0, 10_000_000)
    found = cover([WindowCoverage(0, [(0, 3 * 3599), (3 * 3599 + 1, 3 * 3600)])], 0, 3_600_000, timeline)
    assert [(one.kind, one.start) for one in found] == [("data", 0), ("gap", 3_599_000), ("data", 3_599_333)]


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        ({"state": {"seen": [[0, 60], [75, 3600]]}}, [(0, 60), (75, 3600)]),
        ({"state": {"seen": []}}, []),
        ({"state": {}}, None),
        ({"state": {"seen": None}}, None),
        ({"state": None}, None),
        ({"state": {"seen": [[0]]}}, None),
        ({"state": {"seen": [[2, 1]]}}, None),
        ({"state": {"seen": [[0.5, 1]]}}, None),
        ({"state": {"seen": {"0": 1}}}, None),
    ],
)
def test_invalid_steps_of_a_record_are_ignored(value: object, steps: object) -> None:
    assert steps_at(orjson.dumps(value), ["state", "seen"]) == steps
