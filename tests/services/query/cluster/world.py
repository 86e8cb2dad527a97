"""A simulated cluster with its broker and its clock, driven by random events."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.model.named_state import NamedState
from contracts.wire.announcement import AnnouncedPart, AnnouncedState, Announcement
from services.query.cluster.instance import Instance, InstanceDependencies
from services.query.cluster.leases import LeaseTiming
from services.query.cluster.membership import InstanceIdentity
from services.query.cluster.routing import Role
from services.query.ingest.ingestion import ReadProgress
from services.query.store import StatePartition
from services.runtime.broker_clock import BrokerClock

if TYPE_CHECKING:
    from collections.abc import Collection

TIMING = LeaseTiming(lease_s=3.0, silence_s=3.75)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ANSWERS = (Role.OWNER, Role.STANDBY)
EVERY_S = 0.75
NOW = 1_767_225_600_000
"""The time of day, in milliseconds, which a test may move."""
HOUR, GRACE = timedelta(hours=1), timedelta(minutes=11)


class MemoryWatermark:
    """A WatermarkStore in memory."""

    def __init__(self) -> None:
        self._mark = 0

    def watermark(self) -> int:
        return self._mark

    def advance_watermark(self, watermark: int) -> None:
        self._mark = max(self._mark, watermark)


class Disk:
    """The data of an instance that survive its processes: the position of each partition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.run = 0
        self.positions: dict[StatePartition, int] = {}


class SimulatedIngestion:
    """An ingestion whose progress the simulation sets."""

    def __init__(self, disk: Disk, end_offsets: dict[StatePartition, int]) -> None:
        self._disk = disk
        self._end_offsets = end_offsets
        self.followed: set[StatePartition] = set()

    def assign(self, partition: StatePartition) -> None:
        self.followed.add(partition)
        self._disk.positions.setdefault(partition, 0)

    def unassign(self, partition: StatePartition) -> None:
        self.followed.discard(partition)

    def progress(self, partition: StatePartition) -> ReadProgress | None:
        return (
            ReadProgress(self._disk.positions[partition], self._end_offsets[partition])
            if partition in self.followed
            else None
        )

    async def end_offsets(self, parts: Collection[StatePartition]) -> dict[StatePartition, int]:
        raise NotImplementedError

    async def growing(self, states: Collection[str]) -> Collection[str]:
        raise NotImplementedError

    async def run(self) -> None:
        raise NotImplementedError


class Process:
    """One run of an instance, with the messages in flight between it and the broker."""

    def __init__(self, disk: Disk, world: World) -> None:
        disk.run += 1
        self.disk = disk
        self.reading = SimulatedIngestion(disk, world.end_offsets)
        me = InstanceIdentity(disk.name, f"http://{disk.name}", disk.name, disk.run)
        self.mark = MemoryWatermark()
        flights = NamedState(
            "flights",
            "topic",
            {},
            len(world.end_offsets),
            lifetime=HOUR,
            grace=GRACE,
            expires_by_clock=world.expires_by_clock,
        )
        self.ahead_ms = 0
        """How far its clock is ahead of the others, and of the broker's."""
        self.broker_clock = BrokerClock(lambda: 0.0)
        dependencies = InstanceDependencies(
            {"flights": flights}, self.reading, {"flights": self.mark}, lambda: world.time_of_day + self.ahead_ms
        )
        self.instance = Instance(me, TIMING, dependencies, world.replicas, self.broker_clock)
        self.outgoing: list[Announcement] = []
        self.read = 0
        self.announced = float("-inf")
        self.stopped_until = 0.0
        self.cut_until = 0.0
        self.behind = 0.0
        """How long its machine was suspended, and with it its clock."""


class World:
    """Instances, their announcements in order, and the latest position of each partition that a reader has seen."""

    def __init__(self, rng: random.Random, *, names: str = "abc", parts: int = 2, replicas: int = 2) -> None:
        self.rng = rng
        self.replicas = replicas
        self.now = 1000.0
        self.log: list[Announcement] = []
        self.end_offsets = {StatePartition("flights", number): 5 for number in range(parts)}
        self.read_positions = dict.fromkeys(self.end_offsets, 0)
        self.disks = [Disk(name) for name in names]
        self.processes: dict[str, Process] = {}
        self.outage_until = 0.0
        self.most_read = 6
        self.expires_by_clock = False
        self.is_growing = False
        """Whether partitions are being added to the topic."""
        self.time_of_day = NOW
        self.regressions: list[str] = []
        """A line for each answer that was older than an earlier one."""

    def start(self, disk: Disk) -> None:
        """Start an instance; one that still runs is killed."""
        old = self.processes.get(disk.name)
        if old is not None and self.rng.random() < 0.5:
            self.log.extend(old.outgoing[:1])  # it was already in flight
        self.processes[disk.name] = Process(disk, self)

    def kill(self, disk: Disk) -> None:
        """Stop it as kill -9 does."""
        self.processes.pop(disk.name, None)

    def leave(self, disk: Disk) -> None:
        """Stop it cleanly."""
        process = self.processes.pop(disk.name, None)
        if process is not None and not self._is_cut(process):
            process.instance.partition_status("flights", 0, self.now)
            self.log.extend([*process.outgoing, process.instance.leave()])

    def assign(self, partition: StatePartition, owners: Collection[str]) -> None:
        """Assign a partition, as the consumer group does; a wrong group assigns it to several or none."""
        for name, process in self.processes.items():
            (process.instance.assigned.add if name in owners else process.instance.assigned.discard)(partition)

    def pass_time(self, seconds: float, *, lively: float = 0.7) -> None:
        """Advance the time; each message in flight arrives with this probability."""
        self.now += seconds
        if self.now >= self.outage_until:
            for partition in self.end_offsets:
                self.end_offsets[partition] += self.rng.randrange(2)
        processes = list(self.processes.values())
        self.rng.shuffle(processes)
        for process in processes:
            if self.now >= process.stopped_until:
                self._read_all()  # before a process that was suspended runs again
                self._go_on(process, lively)
                self._read_all()

    def suspend(self, name: str, seconds: float) -> None:
        """Suspend its machine, and with it its clock."""
        self.processes[name].stopped_until = self.now + seconds
        self.processes[name].behind += seconds

    def answering(self, partition: StatePartition) -> list[str]:
        """Return the instances that would answer for the partition now."""
        return [
            name
            for name, one in self.processes.items()
            if self.now >= one.stopped_until
            and one.instance.partition_status(*partition, self.now - one.behind).role in ANSWERS
        ]

    def _is_cut(self, process: Process) -> bool:
        return self.now < max(self.outage_until, process.cut_until)

    def _go_on(self, process: Process, lively: float) -> None:
        rng, instance, now = self.rng, process.instance, self.now - process.behind
        if not self._is_cut(process):
            while process.outgoing and rng.random() < lively:
                self.log.append(process.outgoing.pop(0))
            while process.read < len(self.log) and rng.random() < lively + 0.1:
                process.broker_clock.note(self.time_of_day)
                instance.receive(self.log[process.read], now)
                process.read += 1
            self._answer_end_offsets(process, lively)
            for partition in process.reading.followed:
                at, end = process.disk.positions[partition], self.end_offsets[partition]
                process.disk.positions[partition] = min(end, at + rng.randrange(self.most_read))
        must_announce = instance.step(now)
        if must_announce or now - process.announced >= EVERY_S:
            process.announced = now
            process.outgoing.append(instance.announce(now, EPOCH))

    def _answer_end_offsets(self, process: Process, lively: float) -> None:
        for partition, targets in process.instance.open_targets().items():
            if self.rng.random() < lively:
                for target in targets:
                    target.offset = self.end_offsets[partition]
        for checked in process.instance.unchecked_targets().values():
            if self.rng.random() < lively:
                for one in checked:
                    one.is_whole = not self.is_growing

    def _read_all(self) -> None:
        """Read all partitions at all instances: no answer may be older than an earlier one."""
        for partition in self.end_offsets:
            for name in self.answering(partition):
                position = self.processes[name].disk.positions[partition]
                if position < self.read_positions[partition]:
                    self.regressions.append(
                        f"{name} shows {partition} at {position} after {self.read_positions[partition]}"
                    )
                self.read_positions[partition] = max(self.read_positions[partition], position)


def owned(names: str, *, running: int | None = None, replicas: int = 1, seed: int = 1) -> tuple[World, StatePartition]:
    """Start the first of these instances, of which `a` answers for the only partition."""
    world = World(random.Random(seed), names=names, parts=1, replicas=replicas)
    (partition,) = world.end_offsets
    for disk in world.disks[:running]:
        world.start(disk)
    world.assign(partition, ["a"])
    world.most_read = 50
    calm(world, 5)
    return world, partition


def calm(world: World, seconds: float) -> None:
    for _ in range(int(seconds / 0.1)):
        world.pass_time(0.1, lively=0.9)


def claim(  # noqa: PLR0913  # what tests vary
    name: str, number: int, *, term: int = 0, watermark: int = 0, run: int = 1, partitions: int = 0
) -> Announcement:
    """Return the announcement of another instance, which has the lease if it has a term."""
    partition = AnnouncedPart(partition=0, ready=True, held=term > 0, term=term)
    states = {"flights": AnnouncedState(watermark=watermark, topic="topic", partitions=partitions, parts=(partition,))}
    return Announcement(
        instance=name, store=name, run=run, url=f"http://{name}", number=number, ts=EPOCH, states=states
    )
