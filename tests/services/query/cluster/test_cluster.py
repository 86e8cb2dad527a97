"""Instances in this process on a real broker: the group, the announcements, and the owners."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.model.named_state import NamedState
from services.query.cluster.announcements import KafkaAnnouncements
from services.query.cluster.cluster import Cluster, ClusterDependencies, clock
from services.query.cluster.group import KafkaGroupMember
from services.query.cluster.instance import Instance, InstanceDependencies
from services.query.cluster.leases import LeaseTiming
from services.query.cluster.membership import InstanceIdentity
from services.query.cluster.routing import Role
from services.query.errors import DuplicateInstanceError
from services.query.ingest.ingestion import ReadProgress
from services.runtime.broker_clock import BrokerClock
from services.runtime.kafka.clients import KafkaClients
from tests.deadline import DEADLINE_S
from tests.services.query.cluster.world import MemoryWatermark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection

    from services.query.store import StatePartition
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka
PARTITIONS = 4
ANSWERS = (Role.OWNER, Role.STANDBY)


class CaughtUpIngestion:
    """An ingestion that has caught up as soon as it starts."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "end-offsets", "log_level": 0})
        self._end_offsets: dict[StatePartition, int] = {}
        self.is_growing = False
        self.counted = 0
        """How often the number of partitions was requested."""
        self.followed: set[StatePartition] = set()

    def assign(self, partition: StatePartition) -> None:
        self.followed.add(partition)

    def unassign(self, partition: StatePartition) -> None:
        self.followed.discard(partition)

    def progress(self, partition: StatePartition) -> ReadProgress | None:
        return (
            ReadProgress(self._end_offsets.get(partition, 0), self._end_offsets.get(partition))
            if partition in self.followed
            else None
        )

    async def end_offsets(self, parts: Collection[StatePartition]) -> dict[StatePartition, int]:
        found = await asyncio.get_running_loop().run_in_executor(None, self._read_end_offsets, list(parts))
        self._end_offsets.update(found)
        return found

    async def growing(self, states: Collection[str]) -> Collection[str]:
        self.counted += 1
        return states if self.is_growing else []

    async def run(self) -> None:
        raise NotImplementedError

    def _read_end_offsets(self, parts: list[StatePartition]) -> dict[StatePartition, int]:
        try:
            return {
                partition: self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, partition.number), timeout=2
                )[1]
                for partition in parts
            }
        except Exception:  # noqa: BLE001  # the broker is down: no end offsets, as in KafkaIngestion
            return {}


class Lab:
    """A topic of four partitions, and instances on it."""

    def __init__(self, broker: EmbeddedBroker, prefix: str) -> None:
        self.broker = broker
        self.lease_s = 2.0
        self._prefix = prefix
        self.topic = f"{prefix}flights"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [NewTopic(self.topic, PARTITIONS, 1), NewTopic(f"{prefix}instances", 1, 1)]
        for made in admin.create_topics(topics).values():
            made.result(DEADLINE_S)

    def cluster(self, name: str, store: str = "", run: int = 1) -> Cluster:
        """Return an instance that has not joined yet."""
        kafka = KafkaClients({"bootstrap.servers": self.broker.bootstrap})
        self.ingestion = ingestion = CaughtUpIngestion(self.broker.bootstrap, self.topic)
        identity = InstanceIdentity(name, f"http://{name}", store or name, run)
        # On a busy machine all threads of the test may wait for a second; test_leases covers a process that was paused.
        timing = LeaseTiming(lease_s=self.lease_s, silence_s=self.lease_s + 0.5, pause_s=DEADLINE_S)
        flights = NamedState("flights", self.topic, {}, PARTITIONS)
        dependencies = InstanceDependencies({"flights": flights}, ingestion, {"flights": MemoryWatermark()}, lambda: 0)
        broker_clock = BrokerClock(clock)
        instance = Instance(identity, timing, dependencies, 2, broker_clock)
        group = f"{self._prefix}group"
        connections = ClusterDependencies(
            KafkaGroupMember(kafka, group=group, instance=name, session=6.0, topics={self.topic: "flights"}),
            KafkaAnnouncements(
                kafka, topic=f"{self._prefix}instances", group=group, timeout=2.0, broker_clock=broker_clock
            ),
            ingestion,
        )
        return Cluster(instance, connections, 0.5)

    @asynccontextmanager
    async def joined(self, name: str) -> AsyncIterator[Cluster]:
        """Run an instance in the cluster, which leaves at the end of the block."""
        cluster = self.cluster(name)
        running = asyncio.create_task(cluster.run())
        try:
            yield cluster
        finally:
            running.cancel()
            await asyncio.wait([running])


@pytest.fixture
def lab(broker: EmbeddedBroker, topics_prefix: str, caplog: pytest.LogCaptureFixture) -> Lab:
    caplog.set_level(logging.CRITICAL, "services.query")
    return Lab(broker, topics_prefix)


async def until(condition: Callable[[], bool], within_s: float = DEADLINE_S) -> float:
    """Wait for the condition, and return the seconds that it took."""
    began = asyncio.get_running_loop().time()
    while not condition():
        assert asyncio.get_running_loop().time() - began < within_s
        await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time() - began


def answering(cluster: Cluster) -> set[int]:
    return {number for number in range(PARTITIONS) if cluster.partition_status("flights", number).role in ANSWERS}


def owning(cluster: Cluster) -> set[int]:
    return {number for number in range(PARTITIONS) if cluster.partition_status("flights", number).role is Role.OWNER}


async def test_two_instances_share_the_partitions_and_replicate_each_other(lab: Lab) -> None:
    lab.lease_s = 20.0
    async with lab.joined("a") as a:
        await until(lambda: owning(a) == {0, 1, 2, 3})
        async with lab.joined("b") as b:
            await until(lambda: len(owning(a)) == len(owning(b)) == 2 and owning(a) | owning(b) == {0, 1, 2, 3})
            assert [member.instance for member in a.members()] == ["a", "b"]
            (of_b,) = {a.owners("flights", number)[0].instance for number in owning(b)}
            assert of_b == "b"
            assert a.partition_status("flights", min(owning(b))).role is Role.ELSEWHERE
            await until(lambda: all(len(one.owners("flights", n)) == 1 for one in (a, b) for n in range(PARTITIONS)))
        took = await until(lambda: answering(a) == {0, 1, 2, 3})
        assert took < lab.lease_s / 2, "an instance that leaves announces it"


async def test_an_instance_answers_when_the_partitions_have_been_added(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks again until then."""
    monkeypatch.setattr("services.query.cluster.cluster.GROWING_S", 0.1)
    starting = lab.cluster("a")
    lab.ingestion.is_growing = True
    running = asyncio.create_task(starting.run())
    await until(lambda: lab.ingestion.counted >= 3)
    assert not answering(starting)
    lab.ingestion.is_growing = False
    await until(lambda: answering(starting) == {0, 1, 2, 3})
    running.cancel()
    await asyncio.wait([running])


async def test_partitions_are_answered_while_an_instance_joins(lab: Lab) -> None:
    async with lab.joined("a") as a:
        await until(lambda: owning(a) == {0, 1, 2, 3})
        async with lab.joined("b") as b:
            gaps = dict.fromkeys(range(PARTITIONS), 0)
            loop = asyncio.get_running_loop()
            end = loop.time() + DEADLINE_S
            while len(owning(b)) < 2:
                assert loop.time() < end
                for number in range(PARTITIONS):
                    answered = [one for one in (a, b) if number in answering(one)]
                    assert len(answered) < 2
                    gaps[number] += not answered
                await asyncio.sleep(0.005)
            assert max(gaps.values()) * 0.005 < 1.0, gaps


async def test_an_instance_with_the_same_name_stops_the_earlier_one(lab: Lab) -> None:
    first = lab.cluster("a", store="first")
    running = asyncio.create_task(first.run())
    await until(lambda: owning(first) == {0, 1, 2, 3})
    async with lab.joined("a"):
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(running, DEADLINE_S)
    assert raised.group_contains(DuplicateInstanceError, match="STATELOOP_INSTANCE")
