"""The lease of the checkpoint: its file in memory, and the owners of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_app.checkpoint.lease import acquire, take_over
from spark_app.checkpoint.owner import JobOwner, Process

if TYPE_CHECKING:
    from datetime import datetime

    from spark_app.checkpoint.lease import CheckpointLease
    from tests.simulation.kafka.network import Time


class ModelFiles:
    """The folder of a checkpoint. Implements `Files` of the product."""

    path = "the checkpoint"
    is_exclusive = True

    def __init__(self) -> None:
        self._contents: dict[str, str] = {}
        self._owners = 0

    def names(self) -> list[str]:
        """See `Files.names`."""
        return list(self._contents)

    def read(self, name: str) -> str | None:
        """See `Files.read`."""
        return self._contents.get(name)

    def create(self, name: str, content: str) -> bool:
        """See `Files.create`."""
        return self._contents.setdefault(name, content) is content

    def overwrite(self, name: str, content: str) -> None:
        """See `Files.overwrite`."""
        self._contents[name] = content

    def delete(self, name: str) -> None:
        """See `Files.delete`."""
        self._contents.pop(name, None)

    def acquire(self, time: Time, now: datetime) -> CheckpointLease:
        """Return the lease when nobody has it any more. Raises CheckpointInUseError, LeaseLostError."""
        return acquire(self, self._owner(now), time.time, time.sleep)

    def take_over(self, time: Time, now: datetime) -> CheckpointLease:
        """Return the lease although a job may have it. Raises LeaseLostError."""
        return take_over(self, self._owner(now), time.time, time.sleep)

    def _owner(self, now: datetime) -> JobOwner:
        """Return a process of another machine than the ones before."""
        self._owners += 1
        process = Process(pid=self._owners, started=None)
        return JobOwner(id=f"owner-{self._owners}", host="a host", place=None, processes=(process,), since=now)
