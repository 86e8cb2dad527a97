"""The backlog of the job, and the decision to catch up before it goes live."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.settings import KafkaSettings
from services.runtime.kafka.values import EARLIEST, LATEST, NEWEST, OffsetAt, Partition
from spark_app.run.backlog import Backlog, compared, measure
from spark_app.topics.identity import TopicIdentity


def offsets(by_number: dict[int, int]) -> dict[Partition, OffsetAt]:
    return {Partition("events", number): OffsetAt(offset, -1) for number, offset in by_number.items()}


def backlog(
    positions: dict[int, int], end_offsets: dict[int, int], first_recent: dict[int, int], *, first: bool
) -> Backlog:
    at = {Partition("events", number): offset for number, offset in positions.items()}
    return compared(at, offsets(end_offsets), offsets(first_recent), is_first=first)


@pytest.mark.parametrize(
    ("position", "end", "first_recent", "is_long"),
    [
        (10, 10, 5, False),  # all is read
        (10, 10, -1, False),  # all is read, and all is old
        (5, 10, 5, False),  # the first unread record is recent
        (6, 10, 5, False),
        (4, 10, 5, True),  # an unread record is old
        (4, 10, -1, True),  # all unread records are old
        (12, 10, -1, False),  # the topic lost its end
    ],
)
def test_a_backlog_is_long_when_an_old_record_is_unread(
    position: int, end: int, first_recent: int, *, is_long: bool
) -> None:
    measured = backlog({0: position, 1: 3}, {0: end, 1: 3}, {0: first_recent, 1: -1}, first=False)
    assert measured == Backlog(max(0, end - position), is_first=False, is_long=is_long)
    assert measured.must_be_caught_up() is is_long
    assert not measured.must_be_caught_up(may_stay_long=True)


@given(st.dictionaries(st.integers(0, 3), st.integers(0, 9), min_size=1))
def test_a_new_checkpoint_catches_up_with_any_record(end_offsets: dict[int, int]) -> None:
    recent = dict.fromkeys(end_offsets, 0)
    measured = backlog(dict.fromkeys(end_offsets, 0), end_offsets, recent, first=True)
    assert (
        measured.must_be_caught_up()
        is measured.must_be_caught_up(may_stay_long=True)
        is (sum(end_offsets.values()) > 0)
    )


class Stamped:
    """A partition with 10 records of this minute, of which the last one is stamped a day ahead.

    Implements a part of Admin.
    """

    def __init__(self, now: datetime) -> None:
        self.now_ms = round(now.timestamp() * 1000)

    def records(self, at: dict[Partition, int]) -> dict[Partition, OffsetAt]:
        return {partition: self._found(time_ms) for partition, time_ms in at.items()}

    def _found(self, time_ms: int) -> OffsetAt:
        ahead = self.now_ms + 24 * 3_600_000
        results = {EARLIEST: OffsetAt(0, -1), LATEST: OffsetAt(10, -1), NEWEST: OffsetAt(9, ahead)}
        return results.get(time_ms) or OffsetAt(0 if time_ms < self.now_ms else 9, -1)


def test_a_stamp_from_the_future_makes_no_record_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_app.topics.offsets.KafkaAdmin", lambda *_: Stamped(datetime.now(UTC)))
    topics = [TopicIdentity("events", "", 1)]
    assert measure(KafkaSettings(kafka="nowhere:1"), topics, {}, timedelta(minutes=1)) == Backlog(
        10, is_first=False, is_long=False
    )
