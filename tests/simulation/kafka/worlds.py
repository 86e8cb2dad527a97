"""The clients of a broker: of a model, or of a real one, with the product's implementations."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient

from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.assignment_interfaces import StaticMembership
from services.runtime.kafka.async_reader import KafkaTopicReader
from services.runtime.kafka.blocking import BlockingKafkaProducer, TransactionalKafkaProducer
from services.runtime.kafka.group_consumer import KafkaGroupConsumer
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.kafka.partition_reader import KafkaPartitionReader
from services.runtime.kafka.producer import KafkaProducer
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.static_member import KafkaStaticMember
from services.runtime.topic_check import TopicCheck
from tests.deadline import DEADLINE_S
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.blocking_producers import ModelBlockingProducer, ModelTransactionalProducer
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.consumer import ModelGroupConsumer
from tests.simulation.kafka.network import Network
from tests.simulation.kafka.partition_readers import ModelPartitionReader
from tests.simulation.kafka.producers import ModelProducer
from tests.simulation.kafka.readers import ModelBlockingReader, ModelTopicReader
from tests.simulation.kafka.static_members import ModelStaticMember
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from services.runtime.kafka.assignment_interfaces import PartitionReader, StaticMember
    from services.runtime.kafka.interfaces import (
        Admin,
        BlockingProducer,
        BlockingTopicReader,
        FencedGroupConsumer,
        Producer,
        TopicReader,
        TransactionalProducer,
    )
    from tests.simulation.kafka.instances import Instance
    from tests.simulation.kafka.members import Member

START = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_S = 0.2
GROUP = "group"
BATCH = 10
DRAIN = timedelta(seconds=DEADLINE_S)
SESSION = timedelta(seconds=6)
"""The shortest one that a broker accepts."""
MEMBER: dict[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "heartbeat.interval.ms": 100,
}
"""A member learns of a rebalance soon."""


@dataclass
class World:
    """The clients of one broker. The names of its topics begin with `prefix`."""

    prefix: str
    run: Callable[[Coroutine[Any, Any, Any]], Any]
    sleep: Callable[[float], None]
    new_producer: Callable[[], Producer]
    new_blocking: Callable[[], BlockingProducer]
    new_transactional: Callable[[str], TransactionalProducer]
    reader: BlockingTopicReader
    async_reader: TopicReader
    admin: Admin
    delete_topic: Callable[[str], None]
    new_consumer: Callable[[str], FencedGroupConsumer]
    """Creates a member of the group that reads a topic."""
    new_static: Callable[[str], StaticMember]
    """Creates a member of a group that reads nothing, by the name of its instance."""
    new_partition_reader: Callable[[], PartitionReader]
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    transactional: dict[str, TransactionalProducer] = field(default_factory=dict)
    topic_ids: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.renew_producers()

    def renew_producers(self) -> None:
        """Replace the producers: a client reads the number of partitions of a topic every five minutes."""
        self.close_producers()
        self.producer, self.blocking = self.run(_created(self.new_producer)), self.new_blocking()

    def close_producers(self) -> None:
        """Close the producers."""
        if hasattr(self, "producer"):
            self.run(self.producer.close())

    def number_of(self, topic: str, topic_id: str) -> int:
        """Return how many ids of this topic were seen before this one: the ids of two brokers differ."""
        ids = self.topic_ids.setdefault(topic, [])
        if topic_id not in ids:
            ids.append(topic_id)
        return ids.index(topic_id)


async def _created(create: Callable[[], Producer]) -> Producer:
    return create()


def subscription(prefix: str, topic: str, clock: Callable[[], float]) -> TopicSubscription:
    """Return the subscription of a member."""
    check = TopicCheck([topic], "the broker", lambda: None, clock)
    return TopicSubscription(prefix + GROUP, topic, BATCH, DRAIN, check, MEMBER)


def membership(prefix: str, instance: str) -> StaticMembership:
    """Return the membership of an instance in a group that shares two topics."""
    return StaticMembership(f"{prefix}static", instance, (f"{prefix}created", f"{prefix}appended"), SESSION)


@contextmanager
def model_world(prefix: str) -> Iterator[World]:
    """Give the clients of a model broker, whose time passes only when a client waits."""
    loop = VirtualTimeLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        broker = Broker(loop, START, random.Random(0))
        network = Network(loop, random.Random(0))
        world = World(
            prefix,
            runner.run,
            loop.sleep,
            lambda: ModelProducer(broker, network),
            lambda: ModelBlockingProducer(broker, network),
            lambda name: ModelTransactionalProducer(broker, network, prefix + name, prefix + GROUP),
            ModelBlockingReader(broker, network, PATIENCE_S),
            ModelTopicReader(broker, network, PATIENCE_S),
            ModelAdmin(broker, network),
            broker.delete_topic,
            lambda topic: ModelGroupConsumer(broker, network, subscription(prefix, topic, loop.time)),
            lambda instance: ModelStaticMember(broker, network, membership(prefix, instance)),
            lambda: ModelPartitionReader(broker, network),
        )
        try:
            yield world
        finally:
            world.close_producers()


@contextmanager
def real_world(prefix: str, bootstrap: str) -> Iterator[World]:
    """Give the clients of a real broker."""
    client: dict[str, Any] = {"bootstrap.servers": bootstrap}
    raw = AdminClient(client)
    reader = BlockingKafkaReader(client, "test", patience_s=PATIENCE_S)
    with asyncio.Runner() as runner:
        world = World(
            prefix,
            runner.run,
            time.sleep,  # so that no two records have the same time
            lambda: KafkaProducer(client, "test"),
            lambda: BlockingKafkaProducer(client, "test"),
            lambda name: TransactionalKafkaProducer(client, "test", prefix + name, group=prefix + GROUP),
            reader,
            KafkaTopicReader(BlockingKafkaReader(client, "test", patience_s=PATIENCE_S)),
            KafkaAdmin(client, "test"),
            lambda name: raw.delete_topics([name])[name].result(DEADLINE_S),
            lambda topic: KafkaGroupConsumer(client, "test", subscription(prefix, topic, time.monotonic)),
            lambda instance: KafkaStaticMember(client, "test", membership(prefix, instance)),
            lambda: KafkaPartitionReader(client, "test"),
        )
        try:
            yield world
        finally:
            world.close_producers()
            world.run(world.async_reader.close())
            reader.close()
            world.admin.close()
