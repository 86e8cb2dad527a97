"""Start offsets on copies of topics, compared with the plain fold of what a job then merges.

A history is a log of events. The state has a first part of it. The copy has other offsets, lacks some of the first
events, and may have some twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from contracts import Application, Count, Event, State, Topics
from contracts.records.fold import Fold
from contracts.records.record import Delta
from spark_app.lifecycle.start_offsets import BROKER_CLOCKS, FormerEnd, PartitionCopy, StartAt, StartPlan, plan

CLOCKS_MS = BROKER_CLOCKS // timedelta(milliseconds=1)
PARTITION = ("events", 0)
STEPS_MS = (0, 0, 1, 60_000, 2 * CLOCKS_MS)
"""Records of one request have the same time."""
WINDOW = datetime(2026, 5, 1, tzinfo=UTC)


class Reading(Event):
    """An event of a device."""

    event_id: str


class Counted(State, lifetime=timedelta(hours=1)):
    """The number of events."""

    events: Annotated[int, Count()]


APPLICATIONS = {
    is_removed: Application(name="counts", event=Reading, state=Counted, deduplicate=is_removed)
    for is_removed in (True, False)
}

replayed = Application(name="counts", event=Reading, state=Counted, topics=Topics(replay=True))


class Sent(NamedTuple):
    """An event in a log."""

    event_id: int
    device: str
    time_ms: int


@dataclass
class History:
    """A log, of which the state has the first `position` events, and its copy: events by their offsets there."""

    log: list[Sent]
    position: int
    copied: dict[int, Sent]
    begin: int
    end: int
    skipped: int
    """The number of first events that the copy lacks."""

    @property
    def former(self) -> FormerEnd:
        """The end of the log in the state, as a savepoint has it."""
        last = self.log[self.position - 1].time_ms if self.position else None
        following = self.log[self.position].time_ms if self.position < len(self.log) else None
        return FormerEnd(self.position, last, following)

    def copy(self) -> PartitionCopy:
        """The copy, as the job looks it up."""
        first = self.copied[min(self.copied)].time_ms if self.copied else None
        complete, last = self.former.complete_ms or 0, self.former.last_ms or 0
        places = (self._since(complete - CLOCKS_MS), self._since(complete + 1), self._since(last + 1))
        return PartitionCopy(self.begin, self.end, first, *(places if self.position else (self.begin,) * 3))

    def plan(self, start: StartAt | int, *, deduplicates: bool) -> StartPlan:
        """The plan for this history."""
        given_offsets = start if isinstance(start, StartAt) else {PARTITION: start}
        ends, copies = {PARTITION: self.former}, {PARTITION: self.copy()}
        return plan(ends, copies, given_offsets, "events", deduplicates=deduplicates)

    def counts_after(self, made: StartPlan, *, deduplicates: bool) -> dict[str, int]:
        """The number of events of each device that the state has in the end."""
        read = [sent for offset, sent in sorted(self.copied.items()) if offset >= made.offsets[PARTITION]]
        return counts([*self.log[: self.position], *read], deduplicates=deduplicates)

    def counts(self, *, deduplicates: bool) -> dict[str, int]:
        """The number of events of each device of the log."""
        return counts(self.log, deduplicates=deduplicates)

    def _since(self, time_ms: int) -> int:
        return min((offset for offset, sent in self.copied.items() if sent.time_ms >= time_ms), default=self.end)


def counts(log: list[Sent], *, deduplicates: bool) -> dict[str, int]:
    """The state of each device: the fold of all events."""
    fold = Fold(APPLICATIONS[deduplicates])
    for sent in log:
        values = {"event_id": str(sent.event_id), "ts": WINDOW}
        fold.add(Delta(sent.device, WINDOW, f"event/{sent.event_id}", WINDOW, ts=WINDOW, values=values))
    return {device: partial.version for (device, _), partial in fold.windows.items()}


@st.composite
def histories(draw: st.DrawFn, *, repeats: bool) -> History:
    """A history; with `repeats`, producers and copies have written some events twice."""
    time_ms, log = 1_800_000_000_000, list[Sent]()
    for number in range(draw(st.integers(0, 12))):
        time_ms += draw(st.sampled_from(STEPS_MS))
        former = draw(st.integers(0, number - 1)) if repeats and number and draw(st.booleans()) else number
        log.append(Sent(former, f"d{former % 3}", time_ms))
    skipped = draw(st.integers(0, len(log)))
    places = list(range(skipped, len(log)))
    if repeats and places:  # a copy that was interrupted begins anew from an earlier record
        stop, again = sorted((draw(st.integers(0, len(places))), draw(st.integers(0, len(places)))))[::-1]
        places = [*places[:stop], *places[again:]]
    begin = offset = draw(st.integers(0, 3))
    copied = {}
    for place in places:
        offset += draw(st.integers(0, 2))  # a marker of a transaction has an offset
        copied[offset] = log[place]
        offset += 1
    position = draw(st.integers(0, len(log)))
    if position == 0 and skipped:  # a partition deletes records by their times
        assume(skipped == len(log) or log[skipped].time_ms > log[0].time_ms)
    return History(log, position, copied, begin, offset + draw(st.integers(0, 1)), skipped)


@given(histories(repeats=True), st.sampled_from(StartAt))
def test_from_its_time_on_a_job_counts_each_event_once_or_the_plan_reports_the_loss(
    history: History, start: StartAt
) -> None:
    if start is StartAt.BEGINNING:
        assume(history.copied)  # an empty topic is new: the operator's word
    made = history.plan(start, deduplicates=True)
    assert not made.refusals
    if made.losses:
        event("loss")
        return
    event("repeats are read" if made.offsets[PARTITION] < history.copy().lacked else "nothing is read again")
    assert history.counts_after(made, deduplicates=True) == history.counts(deduplicates=True)


@given(histories(repeats=True))
def test_a_copy_that_reaches_back_to_the_state_is_no_loss(history: History) -> None:
    assume(history.skipped < history.position)
    first = history.log[history.skipped].time_ms
    assume(first < history.log[history.position].time_ms if history.position < len(history.log) else True)
    assert not history.plan(StartAt.TIME, deduplicates=True).losses


TIED = [Sent(0, "d0", 1_800_000_000_000), Sent(1, "d1", 1_800_000_000_000)]
"""Events of one time, of which the state has the first: random histories that differ by it are rare."""


@example(History(TIED, 1, dict(enumerate(TIED)), begin=0, end=2, skipped=0), 0)
@given(histories(repeats=True), st.integers(-3, 3))
def test_from_given_offsets_on_a_job_counts_each_event_once_or_the_plan_reports_the_loss(
    history: History, shift: int
) -> None:
    made = history.plan(max(0, history.copy().lacked + shift), deduplicates=True)
    if made.refusals or made.losses:
        event("refused" if made.refusals else "loss")
        return
    assert history.counts_after(made, deduplicates=True) == history.counts(deduplicates=True)


@given(histories(repeats=False), st.just(0) | st.integers(-3, 3) | st.sampled_from(StartAt))
def test_without_removal_of_duplicates_no_event_counts_twice(history: History, start: StartAt | int) -> None:
    if start is StartAt.BEGINNING:
        assume(history.skipped >= history.position)  # the operator's word: the job has read none of the records
    made = history.plan(
        start if isinstance(start, StartAt) else max(0, history.copy().lacked + start), deduplicates=False
    )
    if made.refusals:
        event("refused")
        return
    counted, sent = history.counts_after(made, deduplicates=False), history.counts(deduplicates=False)
    assert all(counted[device] <= sent[device] for device in counted)
    if not made.losses and start is not StartAt.BEGINNING:
        event("equal")
        assert counted == sent


@given(histories(repeats=False))
def test_new_topics_with_records_that_the_state_has_are_refused_without_removal_of_duplicates(
    history: History,
) -> None:
    assume(history.skipped < history.position)
    assert history.plan(StartAt.BEGINNING, deduplicates=False).refusals


COPY = PartitionCopy(begin=0, end=9, first_ms=10, since=0, lacked=4, after=4)
AT = FormerEnd(40, last_ms=50, next_ms=60)


@pytest.mark.parametrize(
    ("start", "copy", "end", "loss"),
    [
        (6, COPY, AT, "the 2 records of partition 0 of events from offset 4 to 6 are not read"),
        (StartAt.TIME, COPY._replace(first_ms=1_250), AT, "begins 1.200 s after the last record"),
        (StartAt.TIME, COPY._replace(first_ms=None), AT, "has no record: those after 1970-01-01 00:00:00 UTC"),
        (StartAt.TIME, COPY, FormerEnd(40), "the savepoint has no time for partition 0 of events"),
        (StartAt.TIME, COPY._replace(begin=2), FormerEnd(0), "begins at offset 2: the state has none"),
        (StartAt.TIME, COPY, FormerEnd(0, next_ms=9), "lacks its first records, from 1970-01-01 00:00:00 UTC on"),
    ],
)
def test_a_loss_is_reported(start: StartAt | int, copy: PartitionCopy, end: FormerEnd, loss: str) -> None:
    offsets = start if isinstance(start, StartAt) else {PARTITION: start}
    made = plan({PARTITION: end}, {PARTITION: copy}, offsets, "events", deduplicates=True)
    (reported,) = made.losses
    assert loss in reported
    new = copy._replace(begin=9, first_ms=None)
    assert plan({PARTITION: end}, {PARTITION: new}, StartAt.BEGINNING, "events", deduplicates=True).losses == []


def test_lost_answers_are_no_loss() -> None:
    answers = ("feedback", 0)
    made = plan({answers: AT}, {answers: COPY._replace(first_ms=None)}, StartAt.TIME, "events", deduplicates=True)
    assert (len(made.notes), made.losses, made.refusals) == (1, [], [])


@pytest.mark.parametrize(("offsets", "problem"), [({}, "names no offset"), ({PARTITION: 10}, "names the offset 10")])
def test_a_file_that_does_not_fit_is_refused(offsets: dict[tuple[str, int], int], problem: str) -> None:
    made = plan({PARTITION: AT}, {PARTITION: COPY}, offsets, "events", deduplicates=True)
    assert problem in made.refusals[0]
    assert made.offsets == {}


def test_without_times_and_removal_of_duplicates_only_new_topics_are_accepted() -> None:
    ends, copies, new = {PARTITION: FormerEnd(40)}, {PARTITION: COPY}, {PARTITION: COPY._replace(begin=9)}
    for start in ({PARTITION: 4}, StartAt.BEGINNING):
        assert plan(ends, copies, start, "events", deduplicates=False).refusals
    assert not plan(ends, new, StartAt.BEGINNING, "events", deduplicates=False).refusals


def test_a_plan_names_partitions_that_are_shorter_than_the_former_ones() -> None:
    made = plan({PARTITION: AT}, {PARTITION: COPY}, StartAt.TIME, "events", deduplicates=True)
    assert "ends at 9, the former one at 40" in made.notes[0]
