"""Start offsets on other topics: where a restored job begins to read copies of its topics, whose offsets differ.

A savepoint has the time of the last record of each partition that is in its state. The broker stamps records in the
order of their offsets, so the state has the earlier records of the copy and lacks the later ones. A start before this
time is safe where duplicates are removed: the digest of a delta is forgotten with its window, and the same watermark
then drops the delta. A start behind the time loses records, and so does a copy that begins behind it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from spark_app.topics.offsets import Positions

BROKER_CLOCKS = timedelta(minutes=10)
"""The maximum difference of the clocks of two brokers. A partition may change its leader."""


class StartAt(StrEnum):
    """Where to begin without a file of offsets."""

    TIME = "time"
    """At the time of the last record that the state has, less the difference of clocks."""
    BEGINNING = "beginning"
    """At the first record: the topics are empty, or the state has none of their records, or duplicates are removed."""


class FormerEnd(NamedTuple):
    """The end of a partition of a former topic in the state. The times are those of the broker, in milliseconds."""

    position: int
    """The offset of the first record that the state lacks."""
    last_ms: int | None = None
    """The time of the last record that it has; None where it is unknown."""
    next_ms: int | None = None
    """The time of the first record that it lacks; None if there was none."""

    @property
    def complete_ms(self) -> int | None:
        """Return the time until which the state lacks no record. It may have some of the next millisecond."""
        if self.last_ms is None or self.next_ms is None:
            return self.last_ms
        return min(self.last_ms, self.next_ms - 1)


class PartitionCopy(NamedTuple):
    """A partition of another topic, with the places of the times of a FormerEnd."""

    begin: int
    end: int
    first_ms: int | None
    """The time of its first record; None without a record."""
    since: int
    """The offset of the first record from BROKER_CLOCKS before `complete_ms` on; the end offset if there is none."""
    lacked: int
    """The offset of the first record after `complete_ms`, which the state may lack; the end offset if there is none."""
    after: int
    """The offset of the first record after `last_ms`, which the state lacks; the end offset if there is none."""


@dataclass
class StartPlan:
    """The start offset of each partition, and what speaks against it."""

    offsets: Positions = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    """Why the job would count events twice, or could not start."""
    losses: list[str] = field(default_factory=list)
    """The events that the state may lack for ever."""
    notes: list[str] = field(default_factory=list)


def plan(
    ends: Mapping[tuple[str, int], FormerEnd],
    copies: Mapping[tuple[str, int], PartitionCopy],
    start: StartAt | Positions,
    events: str,
    *,
    deduplicates: bool,
) -> StartPlan:
    """Return the start offsets on `copies` for a state that has the records before `ends`.

    `events` is the topic of events; a lost or repeated answer of the topic of feedback only costs a call. `start` may
    be the offsets themselves.
    """
    made = StartPlan()
    for partition, copy in sorted(copies.items()):
        offset, end = _offset(partition, copy, start), ends.get(partition, FormerEnd(0))
        if offset is None or offset > copy.end:
            problem = "names no offset for" if offset is None else f"names the offset {offset} for"
            made.refusals.append(f"the file {problem} {_named(partition)}, which ends at {copy.end}")
            continue
        made.offsets[partition] = max(offset, copy.begin)
        is_empty = start is StartAt.BEGINNING and copy.begin == copy.end
        if partition[0] == events and not deduplicates and not is_empty:
            made.refusals += _twice(partition, copy, made.offsets[partition], end)
        if not is_empty:
            lost = [*_skipped(partition, copy, offset, end), *_gap(partition, copy, end)]
            (made.losses if partition[0] == events else made.notes).extend(lost)
        if partition[0] == events and copy.end < end.position:
            made.notes.append(
                f"{_named(partition)} ends at {copy.end}, the former one at {end.position} or later: until it is as "
                "long, a read that waits for an event may return without it"
            )
    return made


def _offset(partition: tuple[str, int], copy: PartitionCopy, start: StartAt | Positions) -> int | None:
    if start is StartAt.BEGINNING:
        return copy.begin
    return copy.since if start is StartAt.TIME else start.get(partition)


def _twice(partition: tuple[str, int], copy: PartitionCopy, offset: int, end: FormerEnd) -> Iterator[str]:
    """Yield why events might count twice, as duplicates are not removed."""
    if end.position == 0:
        return
    if end.last_ms is not None and offset < copy.after:
        yield (
            f"the state may have the {copy.after - offset} records of {_named(partition)} from offset {offset} to "
            f"{copy.after}, and the application does not remove duplicates: they would count twice"
        )
    elif end.last_ms is None:
        yield f"the savepoint has no time for {_named(partition)}: its events might count twice"


def _skipped(partition: tuple[str, int], copy: PartitionCopy, offset: int, end: FormerEnd) -> Iterator[str]:
    """Yield the records that the start leaves out."""
    lacked = copy.begin if end.position == 0 else copy.lacked
    if offset > lacked and (end.position == 0 or end.last_ms is not None):
        yield f"the {offset - lacked} records of {_named(partition)} from offset {lacked} to {offset} are not read"


def _gap(partition: tuple[str, int], copy: PartitionCopy, end: FormerEnd) -> Iterator[str]:
    """Yield that the copy does not reach back to a record that the state has."""
    if end.position == 0 and end.next_ms is not None:
        if copy.first_ms is None or copy.first_ms > end.next_ms:
            yield f"{_named(partition)} lacks its first records, from {_time(end.next_ms)} on, and so does the state"
    elif end.position == 0:
        if copy.begin > 0:
            yield f"{_named(partition)} begins at offset {copy.begin}: the state has none of the records before"
    elif end.complete_ms is None:
        yield f"the savepoint has no time for {_named(partition)}: records before its start may be missing"
    elif copy.first_ms is None:
        yield f"{_named(partition)} has no record: those after {_time(end.complete_ms)} are missing, if there were any"
    elif copy.first_ms > end.complete_ms:
        yield (
            f"{_named(partition)} begins {(copy.first_ms - end.complete_ms) / 1000:.3f} s after the last record that "
            f"the state has, of {_time(end.complete_ms)}: records between are missing, if there were any"
        )


def _named(partition: tuple[str, int]) -> str:
    return f"partition {partition[1]} of {partition[0]}"


def _time(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
