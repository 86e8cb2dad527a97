"""A cluster in memory, with its broker and its clock: everything that happens to it is drawn at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.model.named_state import NamedState
from services.query.cluster.instance import Instance, InstanceDependencies
from services.query.cluster.leases import LeaseTiming
from services.query.cluster.membership import InstanceIdentity
from services.query.cluster.routing import Role
from services.query.ingest.ingestion import ReadProgress
from services.query.store import StatePartition

if TYPE_CHECKING:
    import random
    from collections.abc import Collection

    from contracts.wire.announcement import Announcement
    from services.query.cluster.leases import CatchUpTarget

TIMING = LeaseTiming(lease_s=3.0, silence_s=3.75)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ANSWERS = (Role.OWNER, Role.STANDBY)
EVERY_S = 0.75
NOW = 1_767_225_600_000
"""The time of day, in milliseconds: it stands still, unless a test moves it."""
HOUR, GRACE = timedelta(hours=1), timedelta(minutes=11)


class Mark:
    """A store that has nothing but its watermark."""

    def __init__(self) -> None:
        self._mark = 0

    def watermark(self) -> int:
        return self._mark

    def advance_watermark(self, watermark: int) -> None:
        self._mark = max(self._mark, watermark)


class Disk:
    """What an instance keeps over its processes: how far it has read each partition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.run = 0
        self.positions: dict[StatePartition, int] = {}


class Reading:
    """A follower whose progress is made by the world."""

    def __init__(self, disk: Disk, ends: dict[StatePartition, int]) -> None:
        self._disk = disk
        self._ends = ends
        self.followed: set[StatePartition] = set()

    def assign(self, partition: StatePartition) -> None:
        self.followed.add(partition)
        self._disk.positions.setdefault(partition, 0)

    def unassign(self, partition: StatePartition) -> None:
        self.followed.discard(partition)

    def progress(self, partition: StatePartition) -> ReadProgress | None:
        return (
            ReadProgress(self._disk.positions[partition], self._ends[partition]) if partition in self.followed else None
        )

    async def end_offsets(self, parts: Collection[StatePartition]) -> dict[StatePartition, int]:
        raise NotImplementedError

    async def run(self) -> None:
        raise NotImplementedError


class Process:
    """One run of an instance, with what is under way between it and the broker."""

    def __init__(self, disk: Disk, world: World) -> None:
        disk.run += 1
        self.disk = disk
        self.reading = Reading(disk, world.ends)
        me = InstanceIdentity(disk.name, f"http://{disk.name}", disk.name, disk.run)
        self.mark = Mark()
        flights = NamedState(
            "flights", "topic", {}, len(world.ends), lifetime=HOUR, grace=GRACE, expires_by_clock=world.expires_by_clock
        )
        around = InstanceDependencies(
            {"flights": flights}, self.reading, {"flights": self.mark}, lambda: world.time_of_day
        )
        self.instance = Instance(me, TIMING, around, world.replicas)
        self.outgoing: list[Announcement] = []
        self.asked: dict[StatePartition, list[CatchUpTarget]] = {}
        self.read = 0
        self.announced = float("-inf")
        self.stopped_until = 0.0
        self.cut_until = 0.0
        self.behind = 0.0
        """How long its clock stood still, with its machine."""


class World:
    """Instances, their announcements in order, and how far each partition was shown to any reader."""

    def __init__(self, rng: random.Random, *, names: str = "abc", parts: int = 2, replicas: int = 2) -> None:
        self.rng = rng
        self.replicas = replicas
        self.now = 1000.0
        self.log: list[Announcement] = []
        self.ends = {StatePartition("flights", number): 5 for number in range(parts)}
        self.shown = dict.fromkeys(self.ends, 0)
        self.disks = [Disk(name) for name in names]
        self.processes: dict[str, Process] = {}
        self.outage_until = 0.0
        self.most_read = 6
        self.expires_by_clock = False
        self.time_of_day = NOW
        self.back: list[str] = []
        """Every answer that went back."""

    def start(self, disk: Disk) -> None:
        """Start an instance, in place of one that was killed just now if it runs."""
        old = self.processes.get(disk.name)
        if old is not None and self.rng.random() < 0.5:
            self.log.extend(old.outgoing[:1])  # it was on its way already
        self.processes[disk.name] = Process(disk, self)

    def kill(self, disk: Disk) -> None:
        """As kill -9 does."""
        self.processes.pop(disk.name, None)

    def leave(self, disk: Disk) -> None:
        """Stop it cleanly."""
        process = self.processes.pop(disk.name, None)
        if process is not None and not self._is_cut(process):
            process.instance.partition_status("flights", 0, self.now)
            self.log.extend([*process.outgoing, process.instance.leave()])

    def assign(self, partition: StatePartition, owners: Collection[str]) -> None:
        """The group names the owner of a partition; it may be wrong, and name several or none."""
        for name, process in self.processes.items():
            (process.instance.assigned.add if name in owners else process.instance.assigned.discard)(partition)

    def pass_time(self, seconds: float, *, lively: float = 0.7) -> None:
        """Time goes on; what is under way arrives with that probability."""
        self.now += seconds
        if self.now >= self.outage_until:
            for partition in self.ends:
                self.ends[partition] += self.rng.randrange(2)
        processes = list(self.processes.values())
        self.rng.shuffle(processes)
        for process in processes:
            if self.now >= process.stopped_until:
                self._ask()  # before a process that stood still did anything
                self._go_on(process, lively)
                self._ask()

    def suspend(self, name: str, seconds: float) -> None:
        """Its machine stands still, and with it its clock."""
        self.processes[name].stopped_until = self.now + seconds
        self.processes[name].behind += seconds

    def answering(self, partition: StatePartition) -> list[str]:
        """The instances that would answer for it now."""
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
                instance.receive(self.log[process.read], now)
                process.read += 1
            self._answer_end_offsets(process, lively)
            for partition in process.reading.followed:
                at, end = process.disk.positions[partition], self.ends[partition]
                process.disk.positions[partition] = min(end, at + rng.randrange(self.most_read))
        told = instance.step(now)
        if told or now - process.announced >= EVERY_S:
            process.announced = now
            process.outgoing.append(instance.announce(now, EPOCH))

    def _answer_end_offsets(self, process: Process, lively: float) -> None:
        for partition, targets in process.instance.open_targets().items():
            if self.rng.random() < lively:
                for target in targets:
                    target.offset = self.ends[partition]

    def _ask(self) -> None:
        """Ask all for everything: none may show less than was shown before."""
        for partition in self.ends:
            for name in self.answering(partition):
                position = self.processes[name].disk.positions[partition]
                if position < self.shown[partition]:
                    self.back.append(f"{name} shows {partition} at {position} after {self.shown[partition]}")
                self.shown[partition] = max(self.shown[partition], position)
