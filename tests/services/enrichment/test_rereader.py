"""Snapshots are read again from a real broker: here and there, past gaps, and without those that are gone."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from services.enrichment.rereader import PATIENCE_S, KafkaRereader
from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.options import create_producer
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.services.broker.embedded import EmbeddedBroker

MANY = 30_000
LATER = 5
"""By this round Kafka has reported the end."""


def always() -> bool:
    return True


def make(broker: EmbeddedBroker, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1)]).values():
        made.result(DEADLINE_S)
    return name


@pytest.fixture
def topic(broker: EmbeddedBroker, topics_prefix: str) -> str:
    """Two partitions, in which each value is its offset."""
    name = make(broker, f"{topics_prefix}snapshots")
    producer = create_producer({"bootstrap.servers": broker.bootstrap}, "test")
    for partition in (0, 1):
        for offset in range(MANY):
            producer.produce(name, str(offset).encode(), b"d", partition)
        assert producer.flush(DEADLINE_S) == 0
    return name


@asynccontextmanager
async def rereading(broker: EmbeddedBroker, topic: str, patience_s: float = PATIENCE_S) -> AsyncIterator[KafkaRereader]:
    client = {"bootstrap.servers": broker.bootstrap}
    rereader = KafkaRereader(client, topic=topic, group="g", patience_s=patience_s)
    async with asyncio.timeout(DEADLINE_S):
        yield rereader
        await rereader.close()


async def test_it_gives_the_records_at_these_offsets_whichever_they_are(broker: EmbeddedBroker, topic: str) -> None:
    requested = [(0, [5, 7, 700]), (0, [701, 900]), (1, [3]), (0, [29_990]), (0, [1, 2]), (1, [MANY - 1])]
    async with rereading(broker, topic) as rereader:
        for partition, offsets in requested:
            found = await rereader.reread(partition, offsets, always)
            assert [(one.partition, one.offset, one.value) for one in found] == [
                (partition, offset, str(offset).encode()) for offset in offsets
            ]


async def test_deleted_records_are_left_out(broker: EmbeddedBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 100)]).values()
    deleted.result(DEADLINE_S)
    async with rereading(broker, topic) as rereader:
        assert [one.offset for one in await rereader.reread(0, [5, 99, 100, 101], always)] == [100, 101]
        assert [one.offset for one in await rereader.reread(0, [200], always)] == [200]


async def test_an_end_before_the_requested_offsets_is_waited_out(broker: EmbeddedBroker, topic: str) -> None:
    """A new leader reports such an end for a while."""
    producer, rounds = create_producer({"bootstrap.servers": broker.bootstrap}, "test"), count(1)

    def grows() -> bool:
        if next(rounds) == LATER:
            producer.produce(topic, b"late", b"d", 0)
            assert producer.flush(DEADLINE_S) == 0
        return True

    async with rereading(broker, topic) as rereader:
        found = await rereader.reread(0, [MANY - 1, MANY], grows)
        assert [one.offset for one in found] == [MANY - 1, MANY]


async def test_a_partition_that_stays_shorter_than_before_raises(broker: EmbeddedBroker, topic: str) -> None:
    """Its topic was made anew. It must not hold back the others for ever."""
    async with rereading(broker, topic, patience_s=0.2) as rereader:
        with pytest.raises(ConsumerFailedError, match="ends before"):
            await rereader.reread(0, [MANY - 1, MANY + 5], always)
        assert [one.offset for one in await rereader.reread(1, [3], always)] == [3]


async def test_obsolete_offsets_are_not_awaited(broker: EmbeddedBroker, topic: str) -> None:
    rounds = count(1)
    async with rereading(broker, topic) as rereader:
        found = await rereader.reread(0, [MANY - 1, MANY + 5], lambda: next(rounds) < LATER)
        assert [one.offset for one in found] == [MANY - 1]
        assert [one.offset for one in await rereader.reread(0, [200], always)] == [200]


async def test_gaps_between_offsets_are_read_past(broker: EmbeddedBroker, topics_prefix: str) -> None:
    """The end of each transaction takes an offset, as what compaction removes leaves gaps."""
    name = make(broker, f"{topics_prefix}gaps")
    producer = create_producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name}, "test")
    producer.init_transactions(DEADLINE_S)
    for each in range(20):
        producer.begin_transaction()
        producer.produce(name, str(2 * each).encode(), b"d", 0)
        producer.commit_transaction(DEADLINE_S)
    async with rereading(broker, name) as rereader:
        found = [one for first in (0, 4, 20, 22) for one in await rereader.reread(0, range(first, first + 3), always)]
        at_the_end = await rereader.reread(0, [39], always)
    assert [one.offset for one in found] == [0, 2, 4, 6, 20, 22, 22, 24]
    assert at_the_end == []
    assert [one.value for one in found] == [str(one.offset).encode() for one in found]


async def test_an_unused_rereader_closes(broker: EmbeddedBroker, topic: str) -> None:
    async with rereading(broker, topic):
        pass
