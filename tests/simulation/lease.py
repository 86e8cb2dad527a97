"""The lease of the checkpoint: its file in memory, and the owners of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_app.checkpoint.lease import acquire, take_over
from spark_app.checkpoint.owner import JobOwner, Process
from tests.spark_app.leasing import MemoryFiles

if TYPE_CHECKING:
    from datetime import datetime

    from spark_app.checkpoint.lease import CheckpointLease
    from tests.simulation.kafka.network import Time


class ModelFiles(MemoryFiles):
    """The folder of a checkpoint, and the leases of processes of other machines."""

    def __init__(self) -> None:
        super().__init__()
        self._owners = 0

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
