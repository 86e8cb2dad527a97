"""The processes of a job, so that another job on the same machine can see whether they are dead."""

import os
import socket
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from pyspark.sql import SparkSession

PROC = Path("/proc")
ENDED = ("Z", "X")
"""The states of a dead process that the kernel still lists."""


class Process(BaseModel):
    """An operating-system process. A later one with the same number has another start."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: int | None
    """The start time, in the kernel's ticks since the machine started."""


class JobOwner(BaseModel):
    """The job that owns a lease: its driver in Python, and the JVM that runs Spark."""

    model_config = ConfigDict(frozen=True)

    id: str
    host: str
    place: str | None
    """The running kernel and its space of process numbers; None where the system does not name them."""
    processes: tuple[Process, ...]
    since: datetime

    def is_dead_here(self, place: str | None) -> bool:
        """Return whether all its processes are dead; False also where this cannot be seen from `place`."""
        return place is not None and self.place == place and all(started(p.pid) != p.started for p in self.processes)

    def __str__(self) -> str:
        """Return the name of the job for an operator."""
        return f"the job on {self.host} with process {self.processes[0].pid}, since {self.since:%Y-%m-%d %H:%M:%S} UTC"


def this_job(spark: SparkSession) -> JobOwner:
    """Return this job as an owner."""
    context: Any = spark.sparkContext
    java_pid = int(context._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001  # PySpark has no public way
    processes = tuple(Process(pid=pid, started=started(pid)) for pid in (os.getpid(), java_pid))
    now = datetime.now(UTC)
    return JobOwner(id=uuid.uuid4().hex, host=socket.gethostname(), place=_place(), processes=processes, since=now)


def started(pid: int) -> int | None:
    """Return when a process started; None for one that is dead, and where the system has no /proc."""
    try:
        state, *fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in ENDED else int(fields[18])  # field 22 of proc_pid_stat(5); `state` is field 3


def _place() -> str | None:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None
