"""The coverage of a key: where a time range has data, and where not. Decoded from the parts of a response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from services.client.answers import NeverSeen
from services.client.errors import InvalidResponseError
from services.client.responses import content, never_seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from services.client.transport import InstanceResponse

Kind = Literal["data", "gap", "open", "unknown"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Interval(NamedTuple):
    """The time from `start` up to `end`: with data, without, not passed yet, or not remembered."""

    kind: Kind
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

    def total(self, kind: Kind) -> timedelta:
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
    body = content(reply, f"{state}/{key}")
    try:
        return CoveragePart(_coverage(body), None if body["next"] is None else datetime.fromisoformat(body["next"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponseError(reply.url, f"of coverage, {error}") from error


def _coverage(body: Mapping[str, Any]) -> KeyCoverage:
    start, end, final_until = (datetime.fromisoformat(body[name]) for name in ("from", "to", "final_until"))
    step, intervals = timedelta(seconds=body["step_s"]), tuple(map(_interval, body["intervals"]))
    return KeyCoverage(body["state"], body["key"], body["field"], step, start, end, final_until, intervals)


def _interval(interval: Mapping[str, Any]) -> Interval:
    if interval["kind"] not in KINDS:
        raise ValueError(f"{interval['kind']!r} is no kind of interval")
    start, end = (datetime.fromisoformat(interval[name]) for name in ("from", "to"))
    return Interval(cast("Kind", interval["kind"]), start, end)
