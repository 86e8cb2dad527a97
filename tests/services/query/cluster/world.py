"""A cluster in memory, with its broker and its clock: everything that happens to it is drawn at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.model.named_state import NamedState
from services.query.cluster.instance import Instance, Surroundings
from services.query.cluster.leases import Terms
from services.query.cluster.membership import Identity
from services.query.cluster.routing import Role
from services.query.ingest.ingestion import Part, Progress

if TYPE_CHECKING:
    import random
    from collections.abc import Collection

    from contracts.wire.announcement import Announcement
    from services.query.cluster.catch_up import Barrier

TERMS = Terms(lease=3.0, silence=3.75)
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

    def advance(self, watermark: int) -> None:
        self._mark = max(self._mark, watermark)


class Disk:
    """What an instance keeps over its processes: how far it has read each part."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.run = 0
        self.positions: dict[Part, int] = {}


class Reading:
    """A follower whose progress is made by the world."""

    def __init__(self, disk: Disk, ends: dict[Part, int]) -> None:
        self._disk = disk
        self._ends = ends
        self.followed: set[Part] = set()

    def follow(self, part: Part) -> None:
        self.followed.add(part)
        self._disk.positions.setdefault(part, 0)

    def leave(self, part: Part) -> None:
        self.followed.discard(part)

    def progress(self, part: Part) -> Progress | None:
        return Progress(self._disk.positions[part], self._ends[part]) if part in self.followed else None

    async def ends(self, parts: Collection[Part]) -> dict[Part, int]:
        raise NotImplementedError

    async def run(self) -> None:
        raise NotImplementedError


class Process:
    """One run of an instance, with what is under way between it and the broker."""

    def __init__(self, disk: Disk, world: World) -> None:
        disk.run += 1
        self.disk = disk
        self.reading = Reading(disk, world.ends)
        me = Identity(disk.name, f"http://{disk.name}", disk.name, disk.run)
        self.mark = Mark()
        flights = NamedState(
            "flights", "topic", {}, len(world.ends), lifetime=HOUR, grace=GRACE, expires_by_clock=world.expires_by_clock
        )
        around = Surroundings({"flights": flights}, self.reading, {"flights": self.mark}, lambda: world.time_of_day)
        self.instance = Instance(me, TERMS, around, world.replicas)
        self.outgoing: list[Announcement] = []
        self.asked: dict[Part, list[Barrier]] = {}
        self.read = 0
        self.announced = float("-inf")
        self.stopped_until = 0.0
        self.cut_until = 0.0
        self.behind = 0.0
        """How long its clock stood still, with its machine."""


class World:
    """Instances, their announcements in order, and how far each part was shown to anybody."""

    def __init__(self, rng: random.Random, *, names: str = "abc", parts: int = 2, replicas: int = 2) -> None:
        self.rng = rng
        self.replicas = replicas
        self.now = 1000.0
        self.log: list[Announcement] = []
        self.ends = {Part("flights", number): 5 for number in range(parts)}
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
            process.instance.standing("flights", 0, self.now)
            self.log.extend([*process.outgoing, process.instance.leave()])

    def assign(self, part: Part, owners: Collection[str]) -> None:
        """The group says who owns a part; it may be wrong, and say several or nobody."""
        for name, process in self.processes.items():
            (process.instance.assigned.add if name in owners else process.instance.assigned.discard)(part)

    def pass_time(self, seconds: float, *, lively: float = 0.7) -> None:
        """Time goes on; what is under way arrives with that probability."""
        self.now += seconds
        if self.now >= self.outage_until:
            for part in self.ends:
                self.ends[part] += self.rng.randrange(2)
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

    def answering(self, part: Part) -> list[str]:
        """Who would answer for it now."""
        return [
            name
            for name, one in self.processes.items()
            if self.now >= one.stopped_until and one.instance.standing(*part, self.now - one.behind).role in ANSWERS
        ]

    def _is_cut(self, process: Process) -> bool:
        return self.now < max(self.outage_until, process.cut_until)

    def _go_on(self, process: Process, lively: float) -> None:
        rng, instance, now = self.rng, process.instance, self.now - process.behind
        if not self._is_cut(process):
            while process.outgoing and rng.random() < lively:
                self.log.append(process.outgoing.pop(0))
            while process.read < len(self.log) and rng.random() < lively + 0.1:
                instance.hear(self.log[process.read], now)
                process.read += 1
            self._answer_ends(process, lively)
            for part in process.reading.followed:
                at, end = process.disk.positions[part], self.ends[part]
                process.disk.positions[part] = min(end, at + rng.randrange(self.most_read))
        told = instance.step(now)
        if told or now - process.announced >= EVERY_S:
            process.announced = now
            process.outgoing.append(instance.announce(now, EPOCH))

    def _answer_ends(self, process: Process, lively: float) -> None:
        for part, barriers in process.instance.asking().items():
            if self.rng.random() < lively:
                for barrier in barriers:
                    barrier.target = self.ends[part]

    def _ask(self) -> None:
        """Ask everybody for everything: nobody may show less than was shown before."""
        for part in self.ends:
            for name in self.answering(part):
                position = self.processes[name].disk.positions[part]
                if position < self.shown[part]:
                    self.back.append(f"{name} shows {part} at {position} after {self.shown[part]}")
                self.shown[part] = max(self.shown[part], position)
