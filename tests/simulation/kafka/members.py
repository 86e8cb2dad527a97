"""The operations of a script on a group: members join, leave, seek and prove, and together read everything."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.runtime.kafka.values import GroupOffset, Output, Partition
from tests.deadline import DEADLINE_S
from tests.simulation.kafka.operations import NOON_MS, Read, Write, observed
from tests.simulation.kafka.worlds import GROUP

if TYPE_CHECKING:
    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import FencedGroupConsumer
    from tests.simulation.kafka.worlds import World

TOPIC = "created"
QUIET = 5
"""The number of rounds without a change after which a rebalance is over."""
VALUES = (b"", b"1", None)


@dataclass
class Member:
    """A worker that reads, and finishes each record at once. Implements RebalanceListener."""

    consumer: FencedGroupConsumer
    positions: dict[int, int] = field(default_factory=dict)
    ours: set[int] = field(default_factory=set)
    confirmed: dict[int, int] = field(default_factory=dict)
    confirmations: set[tuple[int, int]] = field(default_factory=set)
    read: list[Record] = field(default_factory=list)

    def on_assigned(self, partitions: list[int]) -> None:
        self.ours.update(partitions)

    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        positions = {partition: self.positions[partition] for partition in partitions if partition in self.positions}
        self.on_lost(partitions)
        return positions

    def on_lost(self, partitions: list[int]) -> None:
        self.ours.difference_update(partitions)
        for partition in partitions:
            self.positions.pop(partition, None)

    def on_committed(self, positions: dict[int, int]) -> None:
        self.confirmed.update(positions)
        self.confirmations.update(positions.items())

    def on_error(self) -> None:
        """It passes."""

    async def fetch(self) -> None:
        """Read once."""
        records = await self.consumer.fetch(paused=False, full=(), positions=self.positions)
        self.read += records
        self.positions.update((record.partition, record.offset + 1) for record in records)


async def fetch_until_settled(world: World) -> None:
    """Let all members read until each has its share, has read its partitions, and its commits are confirmed."""
    partitions = await world.async_reader.partitions([world.prefix + TOPIC])
    ends = {place.number: end for place, (_, end) in (await world.async_reader.bounds(partitions)).items()}
    async with asyncio.timeout(DEADLINE_S):
        quiet = 0
        while quiet < QUIET:
            quiet = quiet + 1 if await _is_settled(list(world.members.values()), ends) else 0
            await asyncio.gather(*(member.fetch() for member in world.members.values()))


async def _is_settled(members: list[Member], ends: dict[int, int]) -> bool:
    shares = sorted(len(one.ours) for one in members)
    if sum(shares) != len(ends) or shares[-1] - shares[0] > 1:
        return False
    for member in members:
        places = {**await member.consumer.next_offsets(member.ours), **member.positions}
        if any(places.get(number, -1) < ends[number] for number in member.ours) or await member.consumer.lag():
            return False
        if any(member.confirmed.get(one) != at for one, at in member.positions.items()):
            return False
    return True


@dataclass(frozen=True)
class Join(Write):
    """Adds a member, unless it is there."""

    name: str

    def run(self, world: World) -> None:
        async def joined() -> None:
            member = Member(world.new_consumer(world.prefix + TOPIC))
            member.consumer.subscribe(member, asyncio.get_running_loop())
            world.members[self.name] = member

        if self.name not in world.members:
            world.run(joined())


@dataclass(frozen=True)
class Produce(Write):
    """Writes records."""

    partition: int
    number: int

    def run(self, world: World) -> None:
        output = Output(world.prefix + TOPIC, b"a", b"", self.partition, NOON_MS)
        world.blocking.send([output._replace(value=VALUES[number % len(VALUES)]) for number in range(self.number)])


@dataclass(frozen=True)
class Settle(Write):
    """Lets the members read everything; returns what they have read since the last time, and how many have how many."""

    def run(self, world: World) -> object:
        if not world.members:
            return None
        world.run(fetch_until_settled(world))
        read = sorted(record for member in world.members.values() for record in member.read)
        for member in world.members.values():
            member.read = []
        return observed(read), Counter(len(member.ours) for member in world.members.values())


@dataclass(frozen=True)
class Leave(Write):
    """Removes a member when all are settled: a client that closes while it joins may stay until its session ends."""

    name: str

    def run(self, world: World) -> object:
        found = Settle().run(world)
        if self.name in world.members:
            world.run(world.members.pop(self.name).consumer.close())
        return found


@dataclass(frozen=True)
class Seek(Write):
    """Lets the owner of a partition read it again from an offset on. Returns how many are owners."""

    partition: int
    offset: int

    def run(self, world: World) -> int:
        async def sought(member: Member) -> int:
            found = await member.consumer.seek({self.partition: offset})
            member.positions.update(dict.fromkeys(found, offset))
            member.confirmations.clear()
            while found and (self.partition, offset) not in member.confirmations:  # a repeated commit may be in flight
                await member.fetch()
            return len(found)

        Settle().run(world)
        offset = min(self.offset, end_of(world, self.partition))
        return sum(world.run(sought(one)) for one in world.members.values())


@dataclass(frozen=True)
class Prove(Write):
    """Lets all members prove that they own a partition. Returns how many do."""

    partition: int

    def run(self, world: World) -> int:
        async def proven(member: Member) -> bool:
            proof = asyncio.create_task(member.consumer.prove(self.partition, position))
            while not proof.done():
                await member.fetch()
            return await proof

        Settle().run(world)
        position = end_of(world, self.partition)
        return sum(world.run(proven(one)) for one in world.members.values())


@dataclass(frozen=True)
class CommitFromOutside(Write):
    """Commits an offset without being a member."""

    offset: int

    def run(self, world: World) -> bool:
        Settle().run(world)
        offset = GroupOffset(min(self.offset, end_of(world, 0)))
        return world.admin.commit(world.prefix + GROUP, {Partition(world.prefix + TOPIC, 0): offset})


@dataclass(frozen=True)
class CommittedOffsets(Read):
    """Reads the offsets of the group."""

    def run(self, world: World) -> object:
        places = world.reader.partitions([world.prefix + TOPIC])
        return world.admin.committed(world.prefix + GROUP, places)


def end_of(world: World, partition: int) -> int:
    """Return the end of a partition."""
    place = Partition(world.prefix + TOPIC, partition)
    return world.reader.bounds([place])[place].end
