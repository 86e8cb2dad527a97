"""The topic of announcements on a model of the broker."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Any

import pytest

from contracts.records.record import timestamp_ms
from contracts.wire.announcement import Announcement
from services.query.cluster.announcements import INITIAL_RECORDS, KafkaAnnouncements
from services.runtime.broker_clock import BrokerClock
from services.runtime.kafka.values import NewTopic, Output, Partition
from tests.services.query.cluster.world import EPOCH
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.kafka.network import Network
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

TOPIC = "instances"
PLACE = Partition(TOPIC, 0)
TIMEOUT_S, OUTAGE_S = 2.0, 30.0


class Simulation:
    """A broker with the topic."""

    def __init__(self, loop: VirtualTimeLoop, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self.run = run
        self.broker = Broker(loop, EPOCH, random.Random(0))
        self.kafka = ModelKafka(self.broker, Network(loop, random.Random(0)))
        self.kafka.admin("test").create([NewTopic(TOPIC, 1, 1, {"message.timestamp.type": "LogAppendTime"})])

    def write(self, value: bytes | None) -> None:
        self.broker.append(PLACE, Output(TOPIC, b"a", value))

    def written(self) -> list[bytes | None]:
        reader = self.kafka.blocking_reader("test")
        return [record.value for records in reader.read(reader.bounds([PLACE])) for record in records]


class Instance:
    """The numbers of the announcements that an instance has read."""

    def __init__(self, kafka: ModelKafka) -> None:
        self.broker_clock = BrokerClock(asyncio.get_running_loop().time)
        self.announcements = KafkaAnnouncements(
            kafka, topic=TOPIC, group="g", timeout=TIMEOUT_S, broker_clock=self.broker_clock
        )
        self.read: list[int] = []
        self.task = asyncio.create_task(
            self.announcements.run(lambda found: self.read.extend(one.number for one in found))
        )

    async def until_read(self, *numbers: int) -> None:
        async with asyncio.timeout(2 * OUTAGE_S):
            while self.read != list(numbers):  # noqa: ASYNC110 (the time of the test passes only so)
                await asyncio.sleep(0.1)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    loop = VirtualTimeLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        yield Simulation(loop, runner.run)


def announcement(number: int) -> Announcement:
    return Announcement(instance="a", store="s", run=1, url="http://a", number=number, ts=EPOCH)


def test_announcements_are_read_in_their_order(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    async def announced() -> None:
        first, second = Instance(simulation.kafka), Instance(simulation.kafka)
        first.announcements.send(announcement(1))
        await second.until_read(1)
        simulation.write(None)
        simulation.write(b"{}")
        second.announcements.send(announcement(2))
        first.announcements.send(announcement(3))
        for instance in (first, second):
            await instance.until_read(1, 2, 3)
            await instance.stop()

    simulation.run(announced())
    assert caplog.messages == 2 * ["an announcement is invalid"]


def test_announcements_show_the_clock_of_the_broker(simulation: Simulation) -> None:
    async def announced() -> None:
        instance = Instance(simulation.kafka)
        instance.announcements.send(announcement(1))
        await instance.until_read(1)
        await asyncio.sleep(7.0)
        lag_ms = simulation.broker.now_ms - timestamp_ms(instance.broker_clock.now())
        assert 0 <= lag_ms < 200, "the time until the announcement was read"
        await instance.stop()

    simulation.run(announced())


def test_an_instance_begins_near_the_end(simulation: Simulation) -> None:
    async def started() -> None:
        instance = Instance(simulation.kafka)
        await instance.until_read(*range(10, INITIAL_RECORDS + 10))
        await instance.stop()

    for number in range(1, INITIAL_RECORDS + 10):
        simulation.write(announcement(number).encode())
    simulation.run(started())


def test_an_announcement_that_was_not_written_in_time_is_dropped(
    simulation: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    async def interrupted() -> None:
        instance = Instance(simulation.kafka)
        instance.announcements.send(announcement(1))
        await instance.until_read(1)
        simulation.kafka.network.is_up = False
        instance.announcements.send(announcement(2))
        await asyncio.sleep(OUTAGE_S)
        simulation.kafka.network.is_up = True
        instance.announcements.send(announcement(3))
        await instance.until_read(1, 3)
        await instance.stop()

    caplog.set_level(logging.WARNING)
    simulation.run(interrupted())
    (dropped,) = [record.facts for record in caplog.records if record.name == KafkaAnnouncements.__module__]  # type: ignore[attr-defined]
    assert (dropped["client"], dropped["code"]) == ("query-announcements", "_MSG_TIMED_OUT")


def test_a_refused_read_is_repeated(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    async def recreated() -> None:
        instance = Instance(simulation.kafka)
        instance.announcements.send(announcement(1))
        await instance.until_read(1)
        simulation.broker.delete_topic(TOPIC)
        await asyncio.sleep(1.0)
        simulation.kafka.admin("test").create([NewTopic(TOPIC, 1, 1, {})])
        instance.announcements.send(announcement(2))
        await instance.until_read(1, 2)
        await instance.stop()

    simulation.run(recreated())
    assert set(caplog.messages) == {"kafka"}


def test_the_last_announcement_has_a_tombstone_behind_it(simulation: Simulation) -> None:
    async def left() -> None:
        instance = Instance(simulation.kafka)
        await instance.announcements.leave(announcement(1))
        await instance.stop()

    simulation.run(left())
    assert simulation.written() == [announcement(1).encode(), None]
