"""The operations of a script that change a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import LATEST, GroupOffset, NewTopic, Output, Partition
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.simulation.kafka.operations import NOON_MS, PARTITIONS, TOPICS, Message, Write, failure, places
from tests.simulation.kafka.worlds import GROUP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.runtime.kafka.interfaces import Producer, TransactionalProducer
    from tests.simulation.kafka.worlds import World

IN_THE_FUTURE_MS = 4_102_444_800_000
UNWRITABLE = {
    "unknown partition": Output("created", b"a", b"1", 7, NOON_MS),
    "too large": Output("created", b"a", bytes(1_000_000), 0, NOON_MS),
    "no key": Output("compacted", None, b"1", 0, NOON_MS),
    "in the future": Output("created", b"a", b"1", 0, IN_THE_FUTURE_MS),
}
SETTINGS = {
    "lag": {"min.compaction.lag.ms": "5"},
    "unknown setting": {"no.such.setting": "5"},
    "unknown policy": {"cleanup.policy": "archive"},
}


@dataclass(frozen=True)
class Send(Write):
    """Writes records together; those that the broker stamps one after the other, so that their times differ."""

    topic: str
    messages: tuple[Message, ...]
    is_blocking: bool = False

    def run(self, world: World) -> Sequence[int]:
        outputs = [message.output(world.prefix + self.topic) for message in self.messages]
        calls = [[output] for output in outputs] if self.topic == "appended" else [outputs]
        return [offset for call in calls for offset in write(world, call, is_blocking=self.is_blocking)]


@dataclass(frozen=True)
class SendUnwritable(Write):
    """Writes a record that the client or the broker refuses, and then another one."""

    problem: str
    is_blocking: bool = False

    def run(self, world: World) -> Sequence[int]:
        output = UNWRITABLE[self.problem]
        return write(world, [output._replace(topic=world.prefix + output.topic)], is_blocking=self.is_blocking)


@dataclass(frozen=True)
class Begin(Write):
    """Begins a transaction."""

    name: str

    def run(self, world: World) -> None:
        producer(self.name, world).begin()


@dataclass(frozen=True)
class Replace(Write):
    """Creates a producer of transactions of this name, and uses it from now on; or goes on with the earlier one."""

    name: str
    is_used: bool = True

    def run(self, world: World) -> None:
        earlier = producer(self.name, world)
        world.transactional[self.name] = world.new_transactional(self.name)
        if not self.is_used:
            world.transactional[self.name] = earlier


@dataclass(frozen=True)
class Enqueue(Write):
    """Writes a record in a transaction."""

    name: str
    topic: str
    message: Message

    def run(self, world: World) -> None:
        producer(self.name, world).enqueue(self.message.output(world.prefix + self.topic))


@dataclass(frozen=True)
class Commit(Write):
    """Commits a transaction, and perhaps an offset of the group in it."""

    name: str
    offset: int | None = None

    def run(self, world: World) -> None:
        place = Partition(f"{world.prefix}created", 0)
        offsets = {} if self.offset is None else {place: GroupOffset(self.offset, self.name)}
        producer(self.name, world).commit(offsets)


@dataclass(frozen=True)
class Abort(Write):
    """Aborts a transaction."""

    name: str

    def run(self, world: World) -> None:
        producer(self.name, world).abort()


@dataclass(frozen=True)
class CommitUnwritable(Write):
    """Writes a record that is refused in a transaction, and commits, and aborts the transaction if that fails."""

    name: str
    problem: str

    def run(self, world: World) -> object:
        transactional, output = producer(self.name, world), UNWRITABLE[self.problem]
        transactional.enqueue(output._replace(topic=world.prefix + output.topic))
        try:
            transactional.commit()
        except KafkaRequestError as error:
            transactional.abort()
            return failure(error)
        return None


@dataclass(frozen=True)
class DeleteRecords(Write):
    """Deletes the records before an offset."""

    topic: str
    partition: int
    end: int

    def run(self, world: World) -> None:
        world.admin.delete_records({Partition(world.prefix + self.topic, self.partition): self.end})


@dataclass(frozen=True)
class Create(Write):
    """Creates topics, if it can."""

    names: tuple[str, ...]
    partitions: int = PARTITIONS
    replicas: int = 1
    setting: str | None = None

    def run(self, world: World) -> object:
        config = {} if self.setting is None else SETTINGS[self.setting]
        new = [NewTopic(world.prefix + name, self.partitions, self.replicas, config) for name in self.names]
        return world.admin.create(new)


@dataclass(frozen=True)
class Grow(Write):
    """Adds partitions to a topic, if it can, and lets the producers know."""

    topic: str
    count: int

    def run(self, world: World) -> None:
        name = world.prefix + self.topic
        world.admin.grow({name: self.count})
        wait_until(lambda: world.admin.partition_counts()[name] == self.count, "the partitions", DEADLINE_S)
        wait_for_leaders(world)
        world.renew_producers()


@dataclass(frozen=True)
class Recreate(Write):
    """Deletes a topic, and creates it again."""

    topic: str

    def run(self, world: World) -> None:
        world.delete_topic(world.prefix + self.topic)
        create(world, [self.topic])
        world.renew_producers()
        world.transactional.clear()  # the broker may refuse the sequence numbers of producers that knew the topic


@dataclass(frozen=True)
class Alter(Write):
    """Changes a setting of a topic, if it can."""

    topic: str
    setting: str

    def run(self, world: World) -> None:
        world.admin.alter(world.prefix + self.topic, SETTINGS[self.setting])


@dataclass(frozen=True)
class CommitOffset(Write):
    """Commits an offset of the group for some partitions, without being a member."""

    topic: str
    partitions: tuple[int, ...]
    offset: int
    metadata: str = ""

    def run(self, world: World) -> bool:
        offset = GroupOffset(self.offset, self.metadata)
        offsets = {Partition(world.prefix + self.topic, number): offset for number in self.partitions}
        return world.admin.commit(world.prefix + GROUP, offsets)


def create(world: World, topics: Sequence[str]) -> None:
    """Create topics of the script, and wait until they can be used."""
    new = [NewTopic(world.prefix + name, PARTITIONS, 1, TOPICS[name]) for name in topics]
    wait_until(lambda: len(world.admin.create(new)) == len(new), "the topics", DEADLINE_S)
    names = {one.name for one in new}
    wait_until(lambda: names <= world.admin.partition_counts().keys(), "the topics", DEADLINE_S)
    wait_for_leaders(world)


def wait_for_leaders(world: World) -> None:
    """Wait until all partitions can be written: a broker refuses requests to a new one for a moment."""
    world.admin.records(dict.fromkeys(places(world), LATEST), DEADLINE_S)


def write(world: World, outputs: Sequence[Output], *, is_blocking: bool) -> Sequence[int]:
    """Write records, and return their offsets."""
    world.sleep(0.01)
    if is_blocking:
        return world.blocking.send(outputs)

    offsets: Sequence[int] = world.run(send(world.producer, outputs))
    return offsets


async def send(producer: Producer, outputs: Sequence[Output]) -> Sequence[int]:
    """Write records from an event loop."""
    return await producer.send(outputs)


def producer(name: str, world: World) -> TransactionalProducer:
    """Return the producer of transactions of this name."""
    if name not in world.transactional:
        world.transactional[name] = world.new_transactional(name)
    return world.transactional[name]
