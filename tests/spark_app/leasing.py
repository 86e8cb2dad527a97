"""A folder, a clock and jobs for the tests of the lease."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from typing_extensions import override

from spark_app.checkpoint.lease import PREFIX, CheckpointLease, acquire
from spark_app.checkpoint.owner import JobOwner, Process, started

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = "kernel 1"
LONGEST_S = 1_000.0
"""The time after which nobody waits for a lease any more."""


class MemoryFiles:
    """The folder of a checkpoint, in memory. Implements `Files` of the product."""

    path = "folder"

    def __init__(self, *, is_exclusive: bool = True) -> None:
        self.is_exclusive = is_exclusive
        self.content: dict[str, str] = {}

    def names(self) -> list[str]:
        return list(self.content)

    def read(self, name: str) -> str | None:
        return self.content.get(name)

    def create(self, name: str, content: str) -> bool:
        if name in self.content:
            return False
        self.content[name] = content
        return True

    def overwrite(self, name: str, content: str) -> None:
        self.content[name] = content

    def delete(self, name: str) -> None:
        self.content.pop(name, None)


class World(MemoryFiles):
    """A folder and a clock; whatever happens meanwhile happens when somebody sleeps."""

    def __init__(self, *, is_exclusive: bool = True) -> None:
        super().__init__(is_exclusive=is_exclusive)
        self.now = 0.0
        self.meanwhile: Callable[[], object] = lambda: None

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < LONGEST_S, "it waits for ever"
        self.meanwhile()

    @override
    def names(self) -> list[str]:
        return ["offsets", f"{PREFIX}copy", *super().names()]

    def acquire(self, owner: JobOwner) -> CheckpointLease:
        return acquire(self, owner, self.clock, self.sleep)


def job(name: str, *, pid: int | None = None, place: str | None = HERE) -> JobOwner:
    """Return a job; the process of another kernel than HERE, or one that lives, cannot be called dead."""
    process = Process(pid=os.getpid(), started=started(os.getpid())) if pid is None else Process(pid=pid, started=1)
    return JobOwner(
        id=name, host=f"host-{name}", place=place, processes=(process,), since=datetime(2026, 1, 1, tzinfo=UTC)
    )
