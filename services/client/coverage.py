"""The coverage of a key: where a time range has data, and where not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from contracts.api.windows import CoverageAnswer, IntervalKind


class Interval(NamedTuple):
    """The time from `start` up to `end`: with data, without, not passed yet, or not remembered."""

    kind: IntervalKind
    start: datetime
    end: datetime

    @property
    def duration(self) -> timedelta:
        """The length of the interval."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class KeyCoverage:
    """The intervals of [start, end), which follow each other without holes. A `step` with any data is covered.

    Before `final_until` the windows are closed, and the intervals change no more. `field` is the path of the field that
    has the coverage.
    """

    state: str
    key: str
    field: str
    step: timedelta
    start: datetime
    end: datetime
    final_until: datetime
    intervals: Sequence[Interval]

    @classmethod
    def of(cls, answer: CoverageAnswer) -> KeyCoverage:
        """Return the coverage in a response: of the beginning of a range, which `next` of the response continues."""
        return cls(
            answer.state,
            answer.key,
            answer.field,
            timedelta(seconds=answer.step_s),
            answer.start,
            answer.end,
            answer.final_until,
            tuple(Interval(interval.kind, interval.start, interval.end) for interval in answer.intervals),
        )

    def total(self, kind: IntervalKind) -> timedelta:
        """The time of all intervals of one kind."""
        return sum((interval.duration for interval in self.intervals if interval.kind == kind), timedelta())

    def joined(self, rest: KeyCoverage) -> KeyCoverage:
        """The coverage of both ranges, the second of which begins where the first ends."""
        first, second = list(self.intervals), list(rest.intervals)
        if first and second and first[-1].kind == second[0].kind:
            second[0] = second[0]._replace(start=first.pop().start)
        return replace(self, end=rest.end, intervals=(*first, *second))
