"""What a model broker does that a real one does not do on request: outages, lost answers, retention and compaction."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from services.runtime.errors import DeliveryFailedError, KafkaRequestError, TopicReadError
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.kafka.values import EARLIEST, LATEST, BoundedRange, NewTopic, Output, Partition
from services.runtime.topic_check import TopicCheck
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.blocking_producers import ModelBlockingProducer
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.consumer import ModelGroupConsumer
from tests.simulation.kafka.members import Member
from tests.simulation.kafka.network import Network
from tests.simulation.kafka.placement import REFRESH_S
from tests.simulation.kafka.producers import ModelProducer
from tests.simulation.kafka.readers import ModelBlockingReader, ModelTopicReader
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PLACE = Partition("events", 0)
SOON = timedelta(seconds=5)


class Simulation:
    """A broker with a topic of two partitions, and the network of one process."""

    def __init__(self, loop: VirtualTimeLoop, run: Any) -> None:
        self.loop = loop
        self.run = run
        self.broker = Broker(loop, START, random.Random(0))
        self.network = self.new_network()
        self.admin = ModelAdmin(self.broker, self.network)
        self.producer = ModelBlockingProducer(self.broker, self.network)
        self.reader = ModelBlockingReader(self.broker, self.network)
        self.admin.create([NewTopic("events", 2, 1, {})])

    def new_network(self) -> Network:
        return Network(self.loop, random.Random(0), lambda found: found.uniform(0.001, 0.01))

    def write(self, *values: bytes | None, key: bytes = b"a") -> None:
        self.producer.send(Output("events", key, value, 0) for value in values)

    def offsets(self) -> list[int]:
        return [one.offset for batch in self.reader.read(self.reader.bounds([PLACE])) for one in batch]


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    loop = VirtualTimeLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        yield Simulation(loop, runner.run)


async def later(network: Network, seconds: float) -> None:
    """Bring the broker back after a while."""
    await asyncio.sleep(seconds)
    network.is_up = True


def test_records_wait_while_the_broker_is_away(simulation: Simulation) -> None:
    async def sent() -> list[int]:
        producer = ModelProducer(simulation.broker, simulation.network)
        simulation.network.is_up = False
        futures = [producer.send([Output("events", b"a", value, 0)]) for value in (b"1", b"2")]
        await later(simulation.network, 100.0)
        assert not any(future.done() for future in futures)
        offsets = [offset for future in futures for offset in await future]
        await producer.close()
        return offsets

    assert simulation.run(sent()) == [0, 1]
    assert simulation.loop.time() > 100.0


@pytest.mark.parametrize("is_away", [True, False])
def test_a_record_whose_acknowledgement_is_lost_is_dropped_and_may_be_written(
    simulation: Simulation, *, is_away: bool
) -> None:
    async def sent() -> None:
        producer = ModelProducer(simulation.broker, simulation.network, SOON)
        simulation.network.is_up = not is_away
        simulation.network.lost_acknowledgements = 1
        with pytest.raises(DeliveryFailedError, check=lambda error: error.is_dropped):
            await producer.send([Output("events", b"a", b"1", 0)])
        await producer.close()

    simulation.run(sent())
    assert SOON.total_seconds() <= simulation.loop.time() < 2 * SOON.total_seconds()
    simulation.network.is_up = True
    assert simulation.offsets() == ([] if is_away else [0])


def test_a_producer_that_drops_nothing_learns_the_offset_of_a_lost_acknowledgement(simulation: Simulation) -> None:
    async def sent() -> list[int]:
        producer = ModelProducer(simulation.broker, simulation.network)
        simulation.network.lost_acknowledgements = 1
        offsets = list(await producer.send([Output("events", b"a", b"1", 0)]))
        producer.drop_unsent()
        await producer.close()
        return offsets

    assert simulation.run(sent()) == simulation.offsets() == [0]


def test_unsent_records_are_dropped(simulation: Simulation) -> None:
    async def sent() -> None:
        producer = ModelProducer(simulation.broker, simulation.network, SOON)
        simulation.network.is_up = False
        future = producer.send([Output("events", b"a", b"1", 0)])
        producer.drop_unsent()
        with pytest.raises(DeliveryFailedError, match="_PURGE_QUEUE"):
            await future
        await later(simulation.network, 1.0)
        await producer.close()

    simulation.run(sent())
    assert simulation.offsets() == []


def test_requests_fail_while_the_broker_is_away_and_blocking_producers_drop(simulation: Simulation) -> None:
    simulation.network.is_up = False
    with pytest.raises(KafkaRequestError, check=lambda error: error.is_of_client):
        simulation.admin.partition_counts()
    with pytest.raises(TopicReadError, match="_TRANSPORT"):
        simulation.reader.bounds([PLACE])
    simulation.producer.enqueue(Output("events", b"a", b"1", 0))
    assert simulation.producer.flush(1.0) == 1
    with pytest.raises(DeliveryFailedError, check=lambda error: error.is_dropped):
        simulation.producer.flush()


def test_a_reader_waits_while_the_broker_is_away(simulation: Simulation) -> None:
    async def read() -> list[bytes | None]:
        reader = ModelTopicReader(simulation.broker, simulation.network)
        simulation.network.is_up = False
        back = asyncio.create_task(later(simulation.network, 100.0))
        found = [one.value async for batch in reader.read({PLACE: BoundedRange(0, 2)}) for one in batch]
        await back
        return found

    simulation.write(b"1", b"2")
    assert simulation.run(read()) == [b"1", b"2"]


def test_a_producer_uses_new_partitions_after_some_minutes(simulation: Simulation) -> None:
    new = Output("events", b"a", b"1", 2)
    simulation.write(b"1")
    simulation.admin.grow({"events": 3})
    with pytest.raises(DeliveryFailedError, match="_UNKNOWN_PARTITION"):
        simulation.producer.send([new])
    simulation.loop.sleep(REFRESH_S)
    assert simulation.producer.send([new]) == [0]


def test_records_expire(simulation: Simulation) -> None:
    simulation.admin.alter("events", {"retention.ms": f"{DAY // timedelta(milliseconds=1)}"})
    simulation.write(b"1", b"2")
    simulation.loop.sleep(DAY.total_seconds())
    simulation.write(b"3")
    simulation.loop.sleep(1.0)
    simulation.broker.expire()
    assert simulation.offsets() == [2]
    assert simulation.admin.offsets({PLACE: EARLIEST}) == {PLACE: 2}


def test_compaction_leaves_the_last_record_of_each_key_and_gaps(simulation: Simulation) -> None:
    simulation.admin.alter("events", {"cleanup.policy": "compact"})
    simulation.write(b"1", b"2", b"3")
    simulation.write(b"1", None, key=b"b")
    simulation.write(b"4", b"5")
    simulation.broker.compact()
    assert simulation.offsets() == [4, 5, 6], "the last record is in the active segment"
    simulation.loop.sleep(2 * DAY.total_seconds())
    simulation.broker.compact()
    assert simulation.offsets() == [5, 6]
    assert simulation.admin.offsets({PLACE: LATEST}) == {PLACE: 7}


def test_a_member_that_is_cut_off_loses_its_partitions(simulation: Simulation) -> None:
    def member(network: Network) -> Member:
        check = TopicCheck(["events"], "the model", lambda: None, simulation.loop.time)
        subscription = TopicSubscription("g", "events", 10, SOON, check, {"session.timeout.ms": 6_000})
        made = Member(ModelGroupConsumer(simulation.broker, network, subscription))
        made.consumer.subscribe(made, asyncio.get_running_loop())
        return made

    async def isolated() -> None:
        cut = simulation.new_network()
        first, second = member(cut), member(simulation.network)
        while len(first.ours) != 2:
            await first.fetch()
        cut.is_up = False
        proof = asyncio.create_task(first.consumer.prove(0, 1))
        began_at = simulation.loop.time()
        while len(second.ours) != 2:
            await asyncio.gather(first.fetch(), second.fetch())
        assert simulation.loop.time() - began_at > 6.0
        assert first.ours == {0, 1}, "it has not noticed"
        cut.is_up = True
        assert not await proof, "its generation is over"
        while len(first.ours) != 1:
            await asyncio.gather(first.fetch(), second.fetch())
        assert first.ours | second.ours == {0, 1}
        for one in (first, second):
            await one.consumer.close()

    simulation.run(isolated())
