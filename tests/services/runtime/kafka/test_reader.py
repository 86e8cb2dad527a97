"""Partitions are read to their ends and beyond: past gaps, markers of transactions, and what is gone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from services.runtime.errors import TopicReadError
from services.runtime.kafka import reader as readers
from services.runtime.kafka.async_reader import KafkaTopicReader
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.reader import NEAR, BlockingKafkaReader, stored_records
from services.runtime.kafka.values import BoundedRange, EndlessRange, Partition
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from contracts.records.record import Record
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka
MANY = 30_000
LATER = 5
"""By this round Kafka has reported the end."""
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PLACE, OTHER = Partition("snapshots", 0), Partition("snapshots", 1)


def always() -> bool:
    return True


def make(broker: EmbeddedBroker, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "-1"})]).values():
        made.result(DEADLINE_S)
    return name


def write(broker: EmbeddedBroker, topic: str, offsets: Iterable[int], partition: int = 0) -> None:
    producer = create_producer({"bootstrap.servers": broker.bootstrap}, "test")
    for offset in offsets:
        stamp = round((NOON + offset * SECOND).timestamp() * 1000)
        producer.produce(topic, str(offset).encode(), b"d", partition, timestamp=stamp)
    assert producer.flush(DEADLINE_S) == 0


def write_transactions(broker: EmbeddedBroker, topic: str, *ends: str) -> None:
    """Write a record to the first partition in each transaction, and end it so."""
    producer = create_producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic}, "test")
    producer.init_transactions(DEADLINE_S)
    for each, end in enumerate(ends):
        producer.begin_transaction()
        producer.produce(topic, str(2 * each).encode(), b"d", 0)
        assert producer.flush(DEADLINE_S) == 0
        {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[end](DEADLINE_S)


@pytest.fixture
def topic(broker: EmbeddedBroker, topics_prefix: str) -> str:
    """Return an empty topic of two partitions."""
    return make(broker, f"{topics_prefix}read")


@pytest.fixture
def reader(broker: EmbeddedBroker) -> Iterator[BlockingKafkaReader]:
    made = BlockingKafkaReader({"bootstrap.servers": broker.bootstrap}, "test")
    yield made
    made.close()


def values(batches: Iterable[Iterable[Record]], partition: int = 0) -> list[bytes | None]:
    return [one.value for batch in batches for one in batch if one.partition == partition]


# Ranges


def test_partitions_are_read_to_their_ends_and_followed(
    broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader
) -> None:
    write(broker, topic, range(5))
    places = reader.partitions([topic, "not there"])
    assert places == [(topic, 0), (topic, 1)]
    bounds = reader.bounds(places)
    assert bounds == {(topic, 0): (0, 5), (topic, 1): (0, 0)}
    write(broker, topic, range(5, 8))
    write(broker, topic, range(1), 1)
    assert values(reader.read(bounds)) == [b"0", b"1", b"2", b"3", b"4"]
    found: list[Record] = []
    while len(found) < 4:
        found += reader.poll(0.1)
    assert values([found]) == [b"5", b"6", b"7"]
    assert values([found], 1) == [b"0"]
    reader.stop()
    write(broker, topic, range(8, 9))
    assert reader.poll(0.5) == []


def test_a_range_within_a_partition_is_read(broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader) -> None:
    write(broker, topic, range(9))
    place = Partition(topic, 0)
    assert values(reader.read({place: BoundedRange(2, 4)})) == [b"2", b"3"]
    assert values([reader.poll(DEADLINE_S)])[0] == b"4"
    assert values(reader.read({place: BoundedRange(3, 3)})) == []


def test_an_endless_range_is_followed_until_it_stops(
    broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader
) -> None:
    found: list[bytes | None] = []
    batches = reader.read({Partition(topic, 0): EndlessRange(0)}, lambda: len(found) == 3)
    for round_, batch in enumerate(batches):
        found.extend(values([batch]))
        if round_ == 1:
            write(broker, topic, range(3))
    assert found == [b"0", b"1", b"2"]


@pytest.mark.parametrize("ends", [("commit", "commit"), ("commit", "abort"), ("abort", "abort"), ("abort", "commit")])
def test_the_end_is_reached_behind_markers_of_transactions(
    broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader, ends: tuple[str, ...]
) -> None:
    write_transactions(broker, topic, *ends)
    place = Partition(topic, 0)
    assert reader.bounds([place]) == {place: (0, 4)}
    found = [str(2 * each).encode() for each, end in enumerate(ends) if end == "commit"]
    assert values(reader.read(reader.bounds([place]))) == found
    within = [one for one in found if one == b"0"]
    for end in (1, 2):
        assert values(reader.read({place: BoundedRange(0, end)})) == within


def test_an_open_transaction_is_the_end(broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader) -> None:
    write(broker, topic, range(2))
    producer = create_producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic}, "test")
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", b"d", 0)
    assert producer.flush(DEADLINE_S) == 0
    bounds = reader.bounds([Partition(topic, 0)])
    assert bounds == {(topic, 0): (0, 2)}
    assert values(reader.read(bounds)) == [b"0", b"1"]
    producer.abort_transaction(DEADLINE_S)


@pytest.mark.parametrize("before", [3, 5])
def test_deleted_records_are_left_out(
    broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader, before: int
) -> None:
    write(broker, topic, range(5))
    delete(broker, topic, before)
    place = Partition(topic, 0)
    assert reader.bounds([place]) == {place: (before, 5)}
    assert values(reader.read({place: BoundedRange(0, 5)})) == [b"3", b"4"][before - 3 :]


def test_a_topic_is_read_from_its_first_record_of_a_time(
    broker: EmbeddedBroker, topic: str, reader: BlockingKafkaReader
) -> None:
    write(broker, topic, range(5))
    found = {
        second: values(reader.read(reader.bounds_since([Partition(topic, 0)], NOON + second * SECOND)))
        for second in (-1, 3, 5)
    }
    assert found == {-1: [b"0", b"1", b"2", b"3", b"4"], 3: [b"3", b"4"], 5: []}


def test_all_records_that_a_topic_holds_are_read(broker: EmbeddedBroker, topic: str) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    assert list(stored_records(client, "test", topic)) == []
    write_transactions(broker, topic, "commit", "abort")
    assert values([stored_records(client, "test", topic)]) == [b"0"]
    with pytest.raises(TopicReadError, match=r"not-there cannot be read .*UNKNOWN_TOPIC"):
        list(stored_records(client, "test", "not-there"))


# Single records


@asynccontextmanager
async def reading(broker: EmbeddedBroker, patience_s: float = readers.PATIENCE_S) -> AsyncIterator[KafkaTopicReader]:
    client = {"bootstrap.servers": broker.bootstrap}
    reader = KafkaTopicReader(BlockingKafkaReader(client, "test", patience_s=patience_s))
    async with asyncio.timeout(DEADLINE_S):
        yield reader
        await reader.close()


def delete(broker: EmbeddedBroker, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    deleted.result(DEADLINE_S)


async def test_it_gives_the_records_at_these_offsets_whichever_they_are(broker: EmbeddedBroker, topic: str) -> None:
    for partition in (0, 1):
        write(broker, topic, range(MANY), partition)
    requested = [(0, [5, 7, 700]), (0, [701, 900]), (1, [3]), (0, [29_990]), (0, [1, 2]), (1, [MANY - 1])]
    async with reading(broker) as reader:
        for partition, offsets in requested:
            found = await reader.at(Partition(topic, partition), offsets, always)
            assert [(one.partition, one.offset, one.value) for one in found] == [
                (partition, offset, str(offset).encode()) for offset in offsets
            ]


async def test_deleted_single_records_are_left_out(broker: EmbeddedBroker, topic: str) -> None:
    write(broker, topic, range(300))
    delete(broker, topic, 100)
    async with reading(broker) as reader:
        place = Partition(topic, 0)
        assert [one.offset for one in await reader.at(place, [5, 99, 100, 101], always)] == [100, 101]
        assert [one.offset for one in await reader.at(place, [200], always)] == [200]


async def test_an_end_before_the_requested_offsets_is_waited_out(broker: EmbeddedBroker, topic: str) -> None:
    """A new leader reports such an end for a while."""
    rounds = count(1)
    write(broker, topic, range(3))

    def grows() -> bool:
        if next(rounds) == LATER:
            write(broker, topic, [3])
        return True

    async with reading(broker) as reader:
        assert [one.offset for one in await reader.at(Partition(topic, 0), [2, 3], grows)] == [2, 3]


async def test_a_partition_that_stays_shorter_than_before_raises(broker: EmbeddedBroker, topic: str) -> None:
    """Its topic was made anew. It must not hold back the others for ever."""
    write(broker, topic, range(3))
    write(broker, topic, range(5), 1)
    async with reading(broker, patience_s=0.2) as reader:
        with pytest.raises(TopicReadError, match="ends before 3"):
            await reader.at(Partition(topic, 0), [2, 8], always)
        with pytest.raises(TopicReadError, match="ends before 3"):
            async for _ in reader.read({Partition(topic, 0): BoundedRange(0, 8)}):
                pass
        assert [one.offset for one in await reader.at(Partition(topic, 1), [3], always)] == [3]


async def test_obsolete_offsets_are_not_awaited(broker: EmbeddedBroker, topic: str) -> None:
    rounds = count(1)
    write(broker, topic, range(3))
    async with reading(broker) as reader:
        found = await reader.at(Partition(topic, 0), [2, 8], lambda: next(rounds) < LATER)
        assert [one.offset for one in found] == [2]
        assert [one.offset for one in await reader.at(Partition(topic, 0), [1], always)] == [1]


async def test_gaps_between_offsets_are_read_past(broker: EmbeddedBroker, topic: str) -> None:
    """The end of each transaction takes an offset, as what compaction removes leaves gaps."""
    write_transactions(broker, topic, *["commit"] * 20)
    async with reading(broker) as reader:
        place = Partition(topic, 0)
        found = [one for first in (0, 4, 20, 22) for one in await reader.at(place, range(first, first + 3), always)]
        at_the_end = await reader.at(place, [39], always)
    assert [one.offset for one in found] == [0, 2, 4, 6, 20, 22, 22, 24]
    assert at_the_end == []
    assert [one.value for one in found] == [str(one.offset).encode() for one in found]


async def test_a_cancelled_read_leaves_the_thread_free(broker: EmbeddedBroker, topic: str) -> None:
    write(broker, topic, range(3))
    async with reading(broker) as reader:
        waiting = asyncio.create_task(reader.at(Partition(topic, 0), [8], always))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.3)
        waiting.cancel()
        batches = reader.read(await reader.bounds(await reader.partitions([topic])))
        assert [one.offset async for batch in batches for one in batch] == [0, 1, 2]


async def test_an_unused_reader_closes(broker: EmbeddedBroker) -> None:
    async with reading(broker):
        pass


# What a broker does not do on request


class FakeConsumer:
    """A consumer that returns these offsets, or errors, of the first partition, and then its end."""

    def __init__(self, *results: int | KafkaError, end: int = 0) -> None:
        self.results = list(results)
        self.end = end
        self.assigned: list[tuple[str, int, int]] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned += [(partition.topic, partition.partition, partition.offset) for partition in partitions]

    def pause(self, _: object) -> None:
        pass

    def resume(self, _: object) -> None:
        pass

    def poll(self, _: float) -> Message | None:
        if not self.results:
            return Message(*PLACE, self.end, error=KafkaError(KafkaError._PARTITION_EOF))  # noqa: SLF001
        result = self.results.pop(0)
        return Message(*PLACE, result) if isinstance(result, int) else Message(*PLACE, 0, error=result)

    def consume(self, *_: object) -> list[Message]:
        return []

    def list_topics(self, **_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))  # noqa: SLF001


def read_from(
    consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch, log: logging.Logger | None = None
) -> BlockingKafkaReader:
    monkeypatch.setattr(readers, "create_consumer", lambda *_: consumer)
    return BlockingKafkaReader({}, "test", log=log, patience_s=0.0)


def test_compacted_records_at_the_end_are_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = read_from(FakeConsumer(0, 5, end=10), monkeypatch)
    batches = reader.read({PLACE: BoundedRange(0, 9)})
    assert [one.offset for batch in batches for one in batch] == [0, 5]
    reader = read_from(FakeConsumer(0, 12), monkeypatch)
    assert [one.offset for batch in reader.read({PLACE: BoundedRange(0, 9)}) for one in batch] == [0]
    assert [one.offset for one in reader.poll()] == [12], "it was read already"


def test_records_of_an_earlier_assignment_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = read_from(FakeConsumer(3), monkeypatch)
    batches = reader.read({OTHER: EndlessRange(0)})
    assert next(batches) == []


def test_near_records_are_read_on_and_others_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = FakeConsumer(7, 8, 9, 10, 11 + NEAR, 3, 3, end=50_000)
    reader = read_from(consumer, monkeypatch)
    for offset in (7, 8, 10, 11 + NEAR):
        assert [one.offset for one in reader.at(PLACE, [offset])] == [offset]
    assert consumer.assigned == [(*PLACE, 7)]
    for _ in range(2):
        assert [one.offset for one in reader.at(PLACE, [3])] == [3]
    assert consumer.assigned[1:] == [(*PLACE, 3), (*PLACE, 3)]


@pytest.mark.parametrize(
    ("error", "is_logged", "is_raised"),
    [
        (KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), True, False),
        (KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), False, True),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), True, True),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, fatal=True), True, True),
    ],
)
def test_an_error_is_raised_unless_it_may_pass_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, error: KafkaError, *, is_logged: bool, is_raised: bool
) -> None:
    reader = read_from(FakeConsumer(error, 4, end=5), monkeypatch, logging.getLogger("test") if is_logged else None)
    batches: Any = reader.read({PLACE: BoundedRange(0, 5)})
    if is_raised:
        with pytest.raises(TopicReadError, match="snapshots cannot be read"):
            list(batches)
    else:
        assert [one.offset for batch in batches for one in batch] == [4]


def test_a_broker_that_is_away_is_an_error_of_a_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TopicReadError, match=r"snapshots cannot be read .*_TRANSPORT"):
        read_from(FakeConsumer(), monkeypatch).partitions(["snapshots"])
