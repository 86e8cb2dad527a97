"""The member of the consumer group on a model of the broker."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, cast

import pytest

from services.query.cluster.group import KafkaGroupMember
from services.query.errors import DuplicateInstanceError, KafkaClientError
from services.query.store import StatePartition
from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.values import NewTopic
from tests.services.query.cluster.world import EPOCH
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.kafka.network import Network
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from services.runtime.kafka.interfaces import Kafka
    from services.runtime.kafka.values import Partition

TOPICS = {"snapshots": "cars", "too_fast": "alerts"}
SESSION_S = 6.0


class Instance:
    """A process of an instance, and the partitions of states that are assigned to it."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.assigned: frozenset[StatePartition] = frozenset()
        member = KafkaGroupMember(kafka, group="g", instance=name, session=SESSION_S, topics=TOPICS)
        self.task = asyncio.create_task(member.run(self._assign))

    def _assign(self, partitions: Collection[StatePartition]) -> None:
        self.assigned = frozenset(partitions)


async def share_everything(*instances: Instance) -> None:
    """Wait until each partition is assigned to one of these instances, and each instance has one."""
    everything = sorted(StatePartition(state, number) for state in TOPICS.values() for number in range(2))

    def is_shared() -> bool:
        shares = [instance.assigned for instance in instances]
        return all(shares) and sorted(partition for share in shares for partition in share) == everything

    async with asyncio.timeout(10 * SESSION_S):
        while not is_shared():  # noqa: ASYNC110 (the time of the test passes only so)
            await asyncio.sleep(0.1)


async def stop(*instances: Instance) -> None:
    for instance in instances:
        instance.task.cancel()
    await asyncio.wait([instance.task for instance in instances])


def test_instances_share_the_partitions_and_a_later_process_stops_an_earlier_one_of_its_instance() -> None:
    async def shared(kafka: ModelKafka) -> None:
        kafka.admin("test").create([NewTopic(topic, 2, 1, {}) for topic in TOPICS])
        first = Instance(kafka, "a")
        await share_everything(first)
        second = Instance(kafka, "b")
        await share_everything(first, second)
        again = Instance(kafka, "a")
        with pytest.raises(DuplicateInstanceError, match="STATELOOP_INSTANCE"):
            await first.task
        await share_everything(again, second)
        await stop(second)
        await share_everything(again)
        await stop(again)

    loop = VirtualTimeLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(shared(ModelKafka(Broker(loop, EPOCH, random.Random(0)), Network(loop, random.Random(0)))))


async def test_a_failed_client_is_reported() -> None:
    class Failing:
        def static_member(self, *_: object) -> Failing:
            return self

        async def run(self, _: Callable[[Collection[Partition]], None]) -> None:
            raise ConsumerFailedError("_FATAL", "the group may not be joined")

    with pytest.raises(KafkaClientError, match="check what the brokers permit"):
        await Instance(cast("Kafka", Failing()), "a").task
