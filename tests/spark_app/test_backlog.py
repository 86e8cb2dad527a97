"""The backlog of the job, and the decision to catch up before it goes live."""

from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from hypothesis import given
from hypothesis import strategies as st

from contracts.settings import KafkaSettings
from spark_app import backlog as lookups
from spark_app.backlog import Backlog, Positions, TopicOffsets, compared, measure, parsed
from spark_app.errors import BrokerUnreachableError
from spark_app.topics import TopicIdentity

TWO_SOURCES = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795377000000,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"events":{"1":52,"0":48}}
{"feedback":{"0":7,"1":0}}"""


def offsets(found: dict[int, int]) -> dict[tuple[str, int], Any]:
    return {("events", number): SimpleNamespace(offset=offset) for number, offset in found.items()}


def backlog(
    positions: dict[int, int], end_offsets: dict[int, int], first_recent: dict[int, int], *, first: bool
) -> Backlog:
    at: Positions = {("events", number): offset for number, offset in positions.items()}
    return compared(at, offsets(end_offsets), offsets(first_recent), is_first=first)


def test_positions_are_read_from_sparks_offset_log() -> None:
    assert parsed(TWO_SOURCES) == {
        ("events", 0): 48,
        ("events", 1): 52,
        ("feedback", 0): 7,
        ("feedback", 1): 0,
    }
    assert parsed("v1\n{}\n-\n" + '{"feedback":{"0":7}}') == {("feedback", 0): 7}


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
    found = backlog({0: position, 1: 3}, {0: end, 1: 3}, {0: first_recent, 1: -1}, first=False)
    assert found == Backlog(max(0, end - position), is_first=False, is_long=is_long)
    assert found.must_be_caught_up() is is_long
    assert not found.must_be_caught_up(may_stay_long=True)


@given(st.dictionaries(st.integers(0, 3), st.integers(0, 9), min_size=1))
def test_a_new_checkpoint_catches_up_with_any_record(end_offsets: dict[int, int]) -> None:
    recent = dict.fromkeys(end_offsets, 0)
    found = backlog(dict.fromkeys(end_offsets, 0), end_offsets, recent, first=True)
    assert found.must_be_caught_up() is found.must_be_caught_up(may_stay_long=True) is (sum(end_offsets.values()) > 0)


class Answers:
    """An admin client that responds with these results: an offset, or the code of an error."""

    def __init__(self, *results: int) -> None:
        self.results = list(results)

    def list_offsets(self, partitions: dict[TopicPartition, OffsetSpec], **_: float) -> dict[TopicPartition, Any]:
        result = self.results.pop(0)
        future: Future[Any] = Future()
        if result < 0 or result == KafkaError.NOT_LEADER_FOR_PARTITION:
            future.set_exception(KafkaException(KafkaError(result)))
        else:
            future.set_result(SimpleNamespace(offset=result))
        return dict.fromkeys(partitions, future)


def test_offsets_of_a_partition_that_is_getting_its_leader_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Answers(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.NOT_LEADER_FOR_PARTITION, 7)
    monkeypatch.setattr(lookups, "create_admin_client", lambda *_: admin)
    found = TopicOffsets(KafkaSettings(kafka="nowhere:1"), [TopicIdentity("events", "", 1)])
    assert found.ends() == {("events", 0): 7}
    admin.results.append(KafkaError._TRANSPORT)  # noqa: SLF001  # the name that the library gives it
    with pytest.raises(BrokerUnreachableError):
        found.ends()


class Stamped:
    """An admin client of a partition with 10 records of this minute, of which the last one is stamped a day ahead."""

    def __init__(self, now: datetime) -> None:
        self.now_ms = round(now.timestamp() * 1000)

    def list_offsets(self, partitions: dict[TopicPartition, OffsetSpec], **_: float) -> dict[TopicPartition, Any]:
        return {partition: self._found(spec) for partition, spec in partitions.items()}

    def _found(self, spec: OffsetSpec) -> Future[Any]:
        ahead = self.now_ms + 24 * 3_600_000
        results = {"EarliestSpec": (0, -1), "LatestSpec": (10, -1), "MaxTimestampSpec": (9, ahead)}
        since_ms = spec._value  # noqa: SLF001  # the library has no public name
        offset, timestamp = results.get(type(spec).__name__) or (0 if since_ms < self.now_ms else 9, -1)
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(offset=offset, timestamp=timestamp))
        return future


def test_a_stamp_from_the_future_makes_no_record_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "create_admin_client", lambda *_: Stamped(datetime.now(UTC)))
    topics = [TopicIdentity("events", "", 1)]
    assert measure(KafkaSettings(kafka="nowhere:1"), topics, {}, timedelta(minutes=1)) == Backlog(
        10, is_first=False, is_long=False
    )
