"""The coverage of a key: where a time range has data, and where not. Decoded from the parts of a response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from contracts.api.windows import CoverageAnswer
from services.client.answers import NeverSeen
from services.client.responses import never_seen, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from contracts.api.windows import IntervalKind
    from services.client.transport import InstanceResponse


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

    def total(self, kind: IntervalKind) -> timedelta:
        """The time of all intervals of one kind."""
        return sum((interval.duration for interval in self.intervals if interval.kind == kind), timedelta())

    def joined(self, rest: KeyCoverage) -> KeyCoverage:
        """The coverage of both ranges, the second of which begins where the first ends."""
        first, second = list(self.intervals), list(rest.intervals)
        if first and second and first[-1].kind == second[0].kind:
            second[0] = second[0]._replace(start=first.pop().start)
        return replace(self, end=rest.end, intervals=(*first, *second))


class CoveragePart(NamedTuple):
    """The coverage of the beginning of a range, and the start of the rest; None if there is none."""

    coverage: KeyCoverage
    next: datetime | None


def coverage_part(reply: InstanceResponse, state: str, key: str) -> CoveragePart | NeverSeen:
    """Return the part in a response. Raises AttemptFailedError and ClientError."""
    if (facts := never_seen(reply)) is not None:
        return NeverSeen(state, key, facts)
    answer = parsed(reply, f"{state}/{key}", CoverageAnswer)
    coverage = KeyCoverage(
        answer.state,
        answer.key,
        answer.field,
        timedelta(seconds=answer.step_s),
        answer.start,
        answer.end,
        answer.final_until,
        tuple(Interval(interval.kind, interval.start, interval.end) for interval in answer.intervals),
    )
    return CoveragePart(coverage, answer.next)
