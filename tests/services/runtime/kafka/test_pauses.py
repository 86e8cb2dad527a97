"""A partition that was paused when its worker lost it is read when the worker gets it back.

The broker is librdkafka's own, in memory: the pause is a matter of the client.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from typing_extensions import override

from services.runtime.kafka.group_consumer import KafkaGroupConsumer
from services.runtime.kafka.interfaces import RebalanceListener, TopicSubscription
from services.runtime.topic_check import TopicCheck
from services.runtime.worker.subscription import member_options
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

PARTITIONS = {0, 1, 2, 3}


class Member(RebalanceListener):
    """A worker of a group, with the partitions that it has."""

    def __init__(self, bootstrap: str) -> None:
        self.partitions: set[int] = set()
        self.read: set[int] = set()
        check = TopicCheck((), bootstrap, lambda: None)
        options = member_options({"heartbeat.interval.ms": "100", "session.timeout.ms": "3000"})
        subscription = TopicSubscription("workers", "snapshots", 100, timedelta(seconds=1), check, options)
        self.consumer = KafkaGroupConsumer({"bootstrap.servers": bootstrap}, "test", subscription)
        self.consumer.subscribe(self, asyncio.get_running_loop())

    async def fetch(self, *, paused: bool = False) -> None:
        """Note the partitions of the records that there are."""
        records = await self.consumer.fetch(paused=paused, full=(), positions={})
        self.read |= {record.partition for record in records}
        await asyncio.sleep(0.02)  # paused, it returns at once

    async def fetch_until(self, is_true: Callable[[], bool], *, paused: bool = False) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not is_true():
                await self.fetch(paused=paused)

    @override
    def on_assigned(self, partitions: list[int]) -> None:
        self.partitions |= {*partitions}

    @override
    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        self.partitions -= {*partitions}
        return {}

    @override
    def on_lost(self, partitions: list[int]) -> None:
        self.partitions -= {*partitions}

    @override
    def on_committed(self, positions: dict[int, int]) -> None:
        """Have no use for it."""

    @override
    def on_error(self) -> None:
        """Have no use for it."""


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """Give a broker in memory, which ends with this producer."""
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=DEADLINE_S).brokers.values()
    yield f"{broker.host}:{broker.port}"
    cluster.flush()


@asynccontextmanager
async def joined(bootstrap: str) -> AsyncIterator[Member]:
    member = Member(bootstrap)
    try:
        yield member
    finally:
        await member.consumer.close()


def write(bootstrap: str) -> None:
    """Write a record to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for partition in PARTITIONS:
        producer.produce("snapshots", b"", partition=partition)
    assert producer.flush(DEADLINE_S) == 0


async def test_a_partition_that_was_revoked_while_it_was_paused_is_read_again(bootstrap: str) -> None:
    write(bootstrap)
    async with joined(bootstrap) as one:
        await one.fetch_until(lambda: one.read == PARTITIONS)
        async with joined(bootstrap) as other:
            beside = asyncio.create_task(other.fetch_until(lambda: bool(other.partitions)))
            await one.fetch_until(beside.done, paused=True)
            await beside
        await one.fetch_until(lambda: one.partitions == PARTITIONS)
        write(bootstrap)
        one.read.clear()
        await one.fetch_until(lambda: one.read == PARTITIONS)
