"""The tail of the dead letters: in memory, and read from Kafka."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.api.loop import DeadLetterSummary
from contracts.records.record import Record
from contracts.wire import DeadLetter
from services.query.console.dead_letters import (
    KEPT,
    LOOKED_BACK,
    MOST_REASONS,
    OTHERS,
    TAIL,
    UNREADABLE,
    DeadLetterLog,
    DeadLetterReader,
)
from services.runtime.errors import TopicReadError
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.values import BoundedRange, Partition
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from services.runtime.kafka.interfaces import BlockingTopicReader
    from services.runtime.kafka.values import EndlessRange
    from tests.services.tools.broker.embedded import EmbeddedBroker

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def summary_of(number: int, reason: str = "malformed") -> DeadLetterSummary:
    return DeadLetterSummary(
        reason=reason,
        detail=None,
        key=str(number),
        written=BEGIN + timedelta(seconds=number),
        topic="events",
        partition=0,
        offset=number,
        timestamp=BEGIN,
        head="{",
    )


def test_all_records_are_counted_and_the_latest_are_kept() -> None:
    log = DeadLetterLog("dead_letters")
    for number in range(1000):
        log.record(summary_of(999 - number, "late" if number % 4 else "malformed"))
    found = log.answer(3)
    assert found.counts == {"late": 750, "malformed": 250}
    assert [one.offset for one in found.latest] == [999, 998, 997]
    assert found.since == BEGIN
    assert len(log.answer(10_000).latest) == KEPT


def test_reasons_are_bounded() -> None:
    log = DeadLetterLog("dead_letters")
    for number in range(1000):
        log.record(summary_of(number, f"reason {number}"))
    found = log.answer(1)
    assert len(found.counts) == MOST_REASONS + 1
    assert found.counts[OTHERS] == 1000 - MOST_REASONS


def test_an_empty_log_has_no_counts() -> None:
    found = DeadLetterLog("dead_letters").answer(10)
    assert (found.since, found.counts, found.latest) == (None, {}, ())


@pytest.mark.kafka
def test_the_tail_is_read_and_followed(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic, log, client = f"{topics_prefix}dead_letters", DeadLetterLog("d"), {"bootstrap.servers": broker.bootstrap}
    other, other_log = f"{topics_prefix}other_dead_letters", DeadLetterLog("o")
    with following(client, {topic: log, other: other_log}):
        for one in (topic, other):
            create(broker, one, 1)
        write(broker, topic, [late(0, "x" * 5000), b"<html>"])
        write(broker, other, [late(1)])
        wait_until(lambda: len(log.answer(9).latest) == 2, "both are read", DEADLINE_S)
        wait_until(lambda: other_log.answer(9).counts == {"late": 1}, "those of the other topic are read", DEADLINE_S)
    found = log.answer(9)
    assert found.counts == {"late": 1, UNREADABLE: 1}
    heads = {one.reason: one.head for one in found.latest}
    assert heads == {"late": "x" * 1000, UNREADABLE: "<html>"}
    assert {one.key for one in found.latest} == {"<b>k</b>"}


class FailingReader:
    """A reader of a topic with 250 records that fails after its first record."""

    def __init__(self) -> None:
        self.starts: list[int] = []

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        return [Partition(topic, 0) for topic in topics]

    def bounds(self, partitions: Collection[Partition], _: float) -> Mapping[Partition, BoundedRange]:
        return dict.fromkeys(partitions, BoundedRange(0, 250))

    def read(
        self, ranges: Mapping[Partition, EndlessRange], is_stopping: Callable[[], bool]
    ) -> Iterator[Sequence[Record]]:
        ((partition, (start, _)),) = ranges.items()
        self.starts.append(start)
        yield [Record(*partition, start, 0, b"k", late(start))]
        if len(self.starts) == 1:
            raise TopicReadError(partition.topic, "_TRANSPORT", "the broker is away")
        wait_until(is_stopping, "the test is over", DEADLINE_S)

    def close(self) -> None: ...


def test_no_dead_letter_is_counted_twice_after_a_failure() -> None:
    failing, log = FailingReader(), DeadLetterLog("d")
    reader = DeadLetterReader(cast("BlockingTopicReader", failing), {"d": log})
    reader.start()
    wait_until(lambda: log.answer(1).counts == {"late": 2}, "it reads again", DEADLINE_S)
    reader.close()
    assert failing.starts == [50, 51]


@pytest.mark.kafka
def test_only_the_end_of_a_long_topic_is_read(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic, log, client = f"{topics_prefix}dead_letters", DeadLetterLog("d"), {"bootstrap.servers": broker.bootstrap}
    create(broker, topic, 1)
    write(broker, topic, [late(number) for number in range(LOOKED_BACK + 500)])
    with following(client, {topic: log}):
        wait_until(lambda: sum(log.answer(1).counts.values()) >= LOOKED_BACK, "the end is read", DEADLINE_S)
    assert log.answer(1).counts == {"late": LOOKED_BACK}
    assert log.answer(1).latest[0].offset == LOOKED_BACK + 499


@contextmanager
def following(client: dict[str, str], logs: dict[str, DeadLetterLog]) -> Iterator[None]:
    reader = DeadLetterReader(KafkaClients(client).blocking_reader("test", options=TAIL), logs)
    reader.start()
    try:
        yield
    finally:
        reader.close()


def late(number: int, head: str | None = None) -> bytes:
    return DeadLetter(reason="late", topic="events", partition=0, offset=number, timestamp=BEGIN, head=head).encode()


def create(broker: EmbeddedBroker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result()


def write(broker: EmbeddedBroker, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer = create_producer({"bootstrap.servers": broker.bootstrap}, "test")
    for value in values:
        producer.produce(topic, value, b"<b>k</b>", partition=partition)
    assert producer.flush(DEADLINE_S) == 0
