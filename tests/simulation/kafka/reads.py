"""The operations of a script that read from a broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import EARLIEST, LATEST, NEWEST, BoundedRange, Partition
from tests.deadline import DEADLINE_S
from tests.simulation.kafka.operations import NOON_MS, RECENT_MS, Read, failure, observed, places, stamp
from tests.simulation.kafka.topics import DEFAULTS
from tests.simulation.kafka.worlds import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contracts.records.record import Record
    from services.runtime.kafka.values import OffsetRange
    from tests.simulation.kafka.worlds import World

FOLLOW_S = 0.1
ABSENT_S = 1.0


@dataclass(frozen=True)
class Ends(Read):
    """Reads the first offset, the end of committed transactions and the end of each partition."""

    def run(self, world: World) -> object:
        bounds, ends = world.reader.bounds(places(world)), world.admin.records(dict.fromkeys(places(world), LATEST))
        return {partition: (*bounds[partition], ends[partition].offset) for partition in bounds}


@dataclass(frozen=True)
class ReadRange(Read):
    """Reads a range of each partition, at most up to its end."""

    start: int
    end: int
    is_async: bool = False

    def run(self, world: World) -> object:
        bounds = world.reader.bounds(places(world))
        ranges = {place: BoundedRange(min(self.start, end), min(self.end, end)) for place, (_, end) in bounds.items()}
        return observed(read(world, ranges, is_async=self.is_async))


@dataclass(frozen=True)
class Follow(Read):
    """Reads a range of each partition, at most up to its end, and the records behind it."""

    start: int
    end: int

    def run(self, world: World) -> object:
        before = ReadRange(self.start, self.end).run(world)
        behind: list[Record] = []
        while records := world.reader.poll(FOLLOW_S):
            behind += records
        world.reader.stop()
        return before, observed(behind)


@dataclass(frozen=True)
class ReadBeyond(Read):
    """Reads a range that may be beyond the end of a partition."""

    topic: str
    start: int
    end: int
    is_async: bool = False

    def run(self, world: World) -> object:
        found: list[Record] = []
        place = Partition(world.prefix + self.topic, 0)
        start = outside_transactions(world, place, self.start)
        try:
            read(world, {place: BoundedRange(start, self.end)}, found, is_async=self.is_async)
        except TopicReadError as error:
            return observed(found), failure(error)
        return observed(found)


@dataclass(frozen=True)
class ReadAssigned(Read):
    """Reads assigned partitions from an offset, or from their beginnings, until each has ended or is lost."""

    topic: str
    start: int | None
    is_replacement: bool

    def run(self, world: World) -> object:
        partitions = world.reader.partitions([world.prefix + self.topic])
        start = self.start
        positions = {one: None if start is None else outside_transactions(world, one, start) for one in partitions}
        return world.run(assigned(world, positions, is_replacement=self.is_replacement))


@dataclass(frozen=True)
class At(Read):
    """Reads single records, that a partition may not have."""

    topic: str
    partition: int
    offsets: tuple[int, ...]
    is_async: bool = False

    def run(self, world: World) -> object:
        place = Partition(world.prefix + self.topic, self.partition)
        offsets = sorted({outside_transactions(world, place, self.offsets[0]), *self.offsets[1:]})
        if not self.is_async:
            return observed(world.reader.at(place, offsets))
        return observed(world.run(world.async_reader.at(place, offsets, lambda: True)))


@dataclass(frozen=True)
class LookUp(Read):
    """Looks offsets up by a time, or by what stands in its place."""

    at: int

    def run(self, world: World) -> object:
        at = dict.fromkeys(places(world), self.at)
        records = {one: (offset, stamp(ms)) for one, (offset, ms) in world.admin.records(at).items()}
        offsets = {} if self.at == NEWEST else world.admin.offsets(at)
        if self.at in {NEWEST, EARLIEST, LATEST}:
            return records, offsets
        return records, offsets, world.reader.bounds_since(places(world), datetime.fromtimestamp(self.at / 1000, UTC))


@dataclass(frozen=True)
class Describe(Read):
    """Describes all topics of the script."""

    def run(self, world: World) -> object:
        counts = {name: one for name, one in world.admin.partition_counts().items() if name.startswith(world.prefix)}
        named = world.admin.partition_counts([world.prefix + name for name in ("created", "new", "absent")])
        found = world.admin.describe(sorted(counts))
        ids = {name: (world.number_of(name, one.id), one.partitions) for name, one in found.items()}
        configs = world.admin.configs(sorted(counts))
        return counts, named, ids, {name: {one: config[one] for one in DEFAULTS} for name, config in configs.items()}


@dataclass(frozen=True)
class Committed(Read):
    """Reads the committed offsets of the group, also of a partition that does not exist."""

    def run(self, world: World) -> object:
        absent = [Partition(f"{world.prefix}created", 9), Partition(f"{world.prefix}absent", 0)]
        return world.admin.committed(world.prefix + GROUP, [*places(world), *absent])


@dataclass(frozen=True)
class Absent(Read):
    """Requests something of a topic, or a partition, that does not exist."""

    request: str
    topic: str = "absent"

    def run(self, world: World) -> object:
        place = Partition(world.prefix + self.topic, 9)
        requests: dict[str, Callable[[], object]] = {
            "partitions": lambda: world.reader.partitions([f"{world.prefix}absent"]),
            "bounds": lambda: world.reader.bounds([place], ABSENT_S),
            "offsets": lambda: world.admin.offsets({place: LATEST}, ABSENT_S),
            "records": lambda: world.admin.records({place: LATEST}, ABSENT_S),
            "describe": lambda: world.admin.describe([f"{world.prefix}absent"]),
            "configs": lambda: world.admin.configs([f"{world.prefix}absent"]),
            "grow": lambda: world.admin.grow({f"{world.prefix}absent": 3}),
            "alter": lambda: world.admin.alter(f"{world.prefix}absent", {"retention.ms": "-1"}),
            "delete": lambda: world.admin.delete_records({place: 1}),
        }
        return requests[self.request]()


REQUESTS = ("partitions", "bounds", "offsets", "records", "describe", "configs", "grow", "alter", "delete")
TIMES = (EARLIEST, LATEST, NEWEST, RECENT_MS, *(NOON_MS + second * 1000 for second in range(-1, 7)))


def outside_transactions(world: World, place: Partition, offset: int) -> int:
    """Return an offset, or the end of committed transactions: a client that begins behind it waits for a marker."""
    end, last = world.reader.bounds([place])[place].end, world.admin.records({place: LATEST})[place].offset
    return end if end < offset <= last else offset


async def assigned(world: World, positions: Mapping[Partition, int | None], *, is_replacement: bool) -> object:
    """Return the records of assigned partitions, their ends, and those that are lost."""
    reader, done = world.new_partition_reader(), asyncio.Event()
    loop, begun = asyncio.get_running_loop(), False
    records: list[Record] = []
    ends: dict[Partition, int] = {}
    lost: set[Partition] = set()

    def work() -> None:
        nonlocal begun
        if not begun and is_replacement:
            reader.replace(positions)
        elif not begun:
            for partition, position in positions.items():
                reader.add(partition, position)
        begun = True
        for piece in reader.read(wait=True):
            records.extend(piece)
        ends.update(reader.ended())
        lost.update(reader.lost())
        if ends.keys() | lost >= positions.keys():
            loop.call_soon_threadsafe(done.set)

    running = asyncio.create_task(reader.run(work))
    async with asyncio.timeout(DEADLINE_S):
        await done.wait()
    running.cancel()
    await asyncio.wait([running])
    return observed(records), ends, lost


def read(
    world: World, ranges: Mapping[Partition, OffsetRange], found: list[Record] | None = None, *, is_async: bool
) -> list[Record]:
    """Read ranges, and append their records as they come."""
    found = [] if found is None else found
    if not is_async:
        for records in world.reader.read(ranges):
            found += records
        return found

    async def reading() -> None:
        async for records in world.async_reader.read(ranges):
            found.extend(records)

    world.run(reading())
    return found
