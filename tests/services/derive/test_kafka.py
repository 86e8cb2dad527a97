"""The worker's topics before it begins, and the records of partitions that it loses while it reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from services.derive import kafka
from services.derive.derive import OutputRecord
from services.derive.errors import NoTopicError
from services.derive.kafka import LOOKS, RealKafka

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from contracts.records.record import Record

    Rebalance = Callable[["Member", list[TopicPartition]], None]

LOST, NOTHING = "lost", "nothing"
CLIENT = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


class Listing:
    """A consumer whose broker knows of a topic from a certain look on, and of its partitions from another."""

    def __init__(self, known_at: int) -> None:
        self.known_at = known_at
        self.made_at = 1
        self.looks = 0

    def list_topics(self, timeout: float) -> SimpleNamespace:
        assert timeout
        self.looks += 1
        made = SimpleNamespace(partitions=range(4 if self.looks >= self.made_at else 0))
        known = {"aircraft": made} if self.looks >= self.known_at else {}
        return SimpleNamespace(topics={"other": SimpleNamespace(partitions=range(9)), **known})


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Listing:
    monkeypatch.setattr(kafka, "AGAIN_S", 0.0)
    return Listing(1)


class Member:
    """A consumer with partition 0, whose polls pass through these steps: an offset to read, LOST, or NOTHING.

    As with librdkafka, a poll serves callbacks until there is a record.
    """

    def __init__(self, *steps: int | str) -> None:
        self.steps = list(steps)
        self.known = True
        self.commits: list[int] = []
        self.end: int | None = None

    def subscribe(self, topics: list[str], on_assign: Rebalance, on_revoke: Rebalance, on_lost: Rebalance) -> None:
        assert topics == ["snapshots"]
        assert on_assign != on_revoke == on_lost
        self.on_assign, self.on_lost = on_assign, on_lost

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout
        return [TopicPartition(one.topic, one.partition, 7) for one in partitions]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        assert (partition.topic, partition.partition, timeout > 0) == ("snapshots", 0, True)
        if self.end is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # a public name
        return 0, self.end

    def poll(self, timeout: float) -> Message | None:
        assert timeout >= 0
        while self.steps and self.steps[0] == LOST:
            del self.steps[0]
            self.on_lost(self, [TopicPartition("snapshots", 0)])
        step = self.steps.pop(0) if self.steps else NOTHING
        return Message("snapshots", 0, step, timestamp=(1, 0)) if isinstance(step, int) else None

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        assert not asynchronous
        if not self.known:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
        self.commits += [one.offset for one in offsets]


def of(consumer: Listing | Member, *, stopping: bool = False, most: int = 10) -> RealKafka:
    ours = RealKafka(CLIENT, "derive", "snapshots", most, lambda: stopping)
    ours._consumer = ours._commits._consumer = consumer  # type: ignore[assignment]  # noqa: SLF001
    return ours


@pytest.mark.parametrize("known_at", [1, 3, LOOKS])
def test_a_topic_that_was_made_just_now_is_waited_for(listing: Listing, known_at: int) -> None:
    listing.known_at = known_at
    assert of(listing).partitions(["aircraft"], "nowhere") == {"aircraft": 4}
    assert listing.looks == known_at


def test_a_topic_without_partitions_is_one_that_is_being_made(listing: Listing) -> None:
    """No key has a place in it: each snapshot would be a dead letter."""
    listing.made_at = 3
    assert of(listing).partitions(["aircraft"], "nowhere") == {"aircraft": 4}
    listing.looks, listing.made_at = 0, LOOKS + 1
    with pytest.raises(NoTopicError, match="aircraft"):
        of(listing).partitions(["aircraft"], "nowhere")


def test_a_topic_that_is_not_there_is_reported_in_the_end(listing: Listing) -> None:
    listing.known_at = LOOKS + 1
    with pytest.raises(NoTopicError, match="aircraft"):
        of(listing).partitions(["aircraft"], "nowhere")


def test_a_stopping_worker_does_not_look_for_topics(listing: Listing) -> None:
    listing.known_at = LOOKS
    assert of(listing, stopping=True).partitions(["aircraft"], "nowhere") == {}
    assert not listing.looks


@pytest.mark.parametrize(
    ("steps", "read"),
    [
        ((1, 2, NOTHING, 3), [1, 2]),
        ((1, 2, LOST, NOTHING), []),
        ((1, LOST, 1, 2, NOTHING), [1, 2]),  # lost, and assigned again, all within the time of a poll
        ((LOST, 1, 2, NOTHING), [1, 2]),
        ((1, LOST, LOST, NOTHING, 1), []),
    ],
)
def test_a_read_has_the_records_since_the_partition_was_lost(steps: tuple[int | str, ...], read: list[int]) -> None:
    ours = of(Member(*steps))
    ours.join()
    assert offsets(ours.read()) == read


@pytest.mark.parametrize(
    ("steps", "read"),
    [
        ((NOTHING,), [1, 2]),
        ((3, NOTHING), [1, 2, 3]),
        ((LOST, NOTHING), []),
        ((LOST, 1, 2, 3, NOTHING), [1, 2, 3]),
        ((3, LOST, 2, NOTHING), [2]),
    ],
)
def test_records_that_were_not_settled_are_read_again_unless_the_partition_was_lost(
    steps: tuple[int | str, ...], read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "FRESH_S", -1.0)
    member = Member(1, 2, NOTHING, *steps)
    ours = of(member)
    ours.join()
    member.known = False
    assert not ours.settle(ours.read(), ())
    member.known = True
    again = ours.read()
    assert offsets(again) == read
    assert ours.settle(again, ())
    assert member.commits == ([read[0], read[-1] + 1] if read else [])


def test_a_commit_that_failed_is_repeated_also_if_no_snapshot_comes() -> None:
    member = Member(1, 2, NOTHING)
    ours = of(member)
    ours.join()
    records, member.known = ours.read(), False
    assert ours.settle(records, ())
    assert ours.settle((), ())
    assert member.commits == []
    member.known = True
    for _ in range(2):
        assert ours.settle((), ())
        assert member.commits == [3]


def test_a_read_has_no_more_records_than_the_settings_allow() -> None:
    ours = of(Member(1, 2, 3), most=2)
    ours.join()
    assert [offsets(ours.read()) for _ in range(3)] == [[1, 2], [3], []]


def offsets(records: Sequence[Record]) -> list[int]:
    return [one.offset for one in records]


class Followed:
    """See `AssignmentListener`. It has nothing to restore."""

    def assigned(self, offsets: Mapping[int, int]) -> None:
        assert offsets == {0: 7}

    def revoked(self, numbers: Collection[int]) -> None:
        """Nothing is revoked."""


class Written:
    """A producer that notes what was committed when a record was given to it."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.committed_before: list[list[int]] = []

    def produce(self, *_: object, on_delivery: object) -> None:
        assert on_delivery
        self.committed_before.append(list(self.member.commits))

    def flush(self, timeout: float) -> int:
        assert timeout
        return 0


@pytest.mark.parametrize("known", [True, False])
def test_changes_by_a_rule_are_written_after_the_evaluated_offsets(
    monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """Otherwise a worker that lost its partitions, and a restart before those offsets, would write for old states."""
    member = Member(1, 2, NOTHING)
    ours, producer = of(member), Written(member)
    monkeypatch.setattr(ours, "_producer", producer)
    ours.join()
    assert ours.settle(ours.read(), ())
    member.commits.clear()
    member.known = known
    monkeypatch.setattr(kafka, "FRESH_S", -1.0)  # the last commit is too long ago
    assert ours.write([OutputRecord("too_high", b"a", b"{}", 0)]) is known
    assert producer.committed_before == ([[3]] if known else [])


def test_the_first_records_of_a_changed_rule_follow_a_commit_of_the_assigned_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member()
    ours, producer = of(member), Written(member)
    monkeypatch.setattr(ours, "_producer", producer)
    ours.join(Followed())
    member.on_assign(member, [TopicPartition("snapshots", 0)])
    assert ours.write([OutputRecord("too_high", b"a", b"{}", 0)])
    assert ours.write([OutputRecord("too_high", b"b", b"{}", 0)])
    assert producer.committed_before == [[7], [7]]
    assert member.commits == [7], "a commit is good for a while"
