"""Random schedules of jobs on one checkpoint: no two publish at the same time, wherever one of them is frozen."""

from __future__ import annotations

import random
import threading
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import pytest

from spark_app.checkpoint import owner
from spark_app.checkpoint.lease import LEASE_S, RENEW_S, CheckpointLease, acquire, take_over
from spark_app.errors import CheckpointInUseError, LeaseLostError
from tests.deadline import DEADLINE_S
from tests.spark_app.leasing import HERE, World, job

if TYPE_CHECKING:
    from collections.abc import Callable

JOBS = ("a", "b", "c")
STEPS = 250
DELAYS_S = (*[0.0] * 12, 0.4, 1.0, RENEW_S, LEASE_S / 2, LEASE_S - 0.1, LEASE_S, 2 * LEASE_S)
MOST_RENEWALS = 8
TAKE_OVERS, TURNS, DEATHS = (0.0, 0.2), (0.1, 0.2, 0.4), (0.0, 0.0, 0.05, 0.1)
"""How often a job takes the lease over that another one has, another job goes on than the last one, a start dies."""


class EndedError(Exception):
    """The schedule is over: the thread of a job ends."""


class KilledError(Exception):
    """A job dies while it starts."""


class ScheduledJob(World):
    """A job on a folder that it shares. It stands still before each operation on a file until the schedule goes on."""

    def __init__(self, name: str, schedule: Schedule) -> None:
        super().__init__()
        self._name, self._schedule = name, schedule
        self.content = schedule.content
        self.lease: CheckpointLease | None = None
        self._starts = False
        self.wakes_at = 0.0
        self._turn, self.stands = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.stands.acquire(timeout=DEADLINE_S)

    def go_on(self) -> None:
        """Run until the next operation on a file, or the next sleep."""
        self._turn.release()
        assert self.stands.acquire(timeout=DEADLINE_S)

    def end(self) -> None:
        self._turn.release()
        self._thread.join(DEADLINE_S)

    def publishes(self) -> bool:
        """Return whether the fence lets a row pass now."""
        return self.lease is not None and not self.lease.is_overdue()

    def _run(self) -> None:
        try:
            self._stand()
            life = 0
            while True:
                life += 1
                self._live(f"{self._name}{life}")
        except EndedError:
            return

    def _live(self, name: str) -> None:
        draw, counts = self._schedule.draw, self._schedule.counts
        start: Callable[..., CheckpointLease] = take_over if draw.random() < self._schedule.take_overs else acquire
        me = job(name, pid=self._schedule.process(), place=self._schedule.place)
        self._starts = True
        try:
            self.lease = lease = start(self, me, self.clock, self.sleep)
        except KilledError:
            self._schedule.dead.add(me.processes[0].pid)
            counts["killed"] += 1
            return
        except (CheckpointInUseError, LeaseLostError) as error:
            counts[type(error).__name__] += 1
            return
        finally:
            self._starts = False
        counts[start.__name__] += 1
        try:
            for _ in range(draw.randrange(MOST_RENEWALS)):
                self.sleep(RENEW_S)
                was_overdue = lease.is_overdue()
                lease.renew()
                counts["late renewal"] += was_overdue
        except LeaseLostError:
            counts["lost"] += 1
            self.sleep(0.5)  # until the keeper stops the query, rows pass as before
        self.lease = None
        lease.release()

    def _stand(self) -> None:
        self.stands.release()
        self._turn.acquire()
        if self._schedule.is_over:
            raise EndedError
        if self._starts and self._schedule.draw.random() < self._schedule.deaths:
            raise KilledError

    def clock(self) -> float:
        return self._schedule.now

    def sleep(self, seconds: float) -> None:
        self.wakes_at = self._schedule.now + seconds
        self._stand()

    def names(self) -> list[str]:
        self._stand()
        return super().names()

    def read(self, name: str) -> str | None:
        self._stand()
        return super().read(name)

    def create(self, name: str, content: str) -> bool:
        self._stand()
        return super().create(name, content)

    def overwrite(self, name: str, content: str) -> None:
        for part in ("", content[:9], content):  # a reader may see a part
            self._stand()
            super().overwrite(name, part)

    def delete(self, name: str) -> None:
        self._stand()
        super().delete(name)


class Schedule:
    """Runs jobs, one operation at a time, and freezes them between any two."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.now, self.is_over = 0.0, False
        self.content: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.take_overs, self._turns = self.draw.choice(TAKE_OVERS), self.draw.choice(TURNS)
        self.deaths, self.place = self.draw.choice(DEATHS), self.draw.choice((None, HERE))
        self.dead: set[int] = set()
        self._processes = count(1)
        self._published_number = 0
        self._jobs = [ScheduledJob(name, self) for name in JOBS[: self.draw.choice((2, 2, 3))]]

    def process(self) -> int:
        """Return the number of the next process."""
        return next(self._processes)

    def started(self, pid: int) -> int | None:
        """Return when a process started; None for a dead one."""
        return None if pid in self.dead else 1

    def run(self) -> Counter[str]:
        """Run the schedule; return what happened how often."""
        turn = self._jobs[0]
        try:
            for _ in range(STEPS):
                if self.draw.random() < self._turns:
                    turn = self.draw.choice(self._jobs)
                self.now = max(self.now, turn.wakes_at) + self.draw.choice(DELAYS_S)
                self._judge()
                turn.go_on()
                self._judge()
        finally:
            self.is_over = True
            for running in self._jobs:
                running.end()
        return self.counts

    def _judge(self) -> None:
        """Fail where two jobs publish, or one publishes after its successor has."""
        numbers = [running.lease.number for running in self._jobs if running.lease and running.publishes()]
        assert len(numbers) <= 1, f"the leases {numbers} publish at the same time"
        for number in numbers:
            assert number >= self._published_number, f"lease {number} publishes after {self._published_number} has"
            self._published_number = number


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(400), id="few"), pytest.param(range(400, 20_000), id="many", marks=pytest.mark.full)],
)
def test_no_two_jobs_publish_at_the_same_time(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            schedule = Schedule(seed)
            monkeypatch.setattr(owner, "started", schedule.started)
            counts += schedule.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    for event in ("acquire", "take_over", "late renewal", "lost", "CheckpointInUseError", "LeaseLostError", "killed"):
        assert counts[event] > len(seeds) / 20, counts
