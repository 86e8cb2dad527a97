"""One launcher for one data folder."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from services.tools.launcher import processes
from services.tools.launcher.errors import AlreadyRunningError, DataFolderError, StillStoppingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STOPPING_S = 40.0


@contextmanager
def alone(lock: Path, stopping_s: float = STOPPING_S) -> Iterator[int]:
    """Hold the lock; yield its descriptor. Raises AlreadyRunningError, StillStoppingError.

    The watchdog inherits the descriptor: after a kill -9 of the launcher, the lock is free once all have stopped.
    """
    data = lock.parent.parent
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataFolderError(data, error.strerror or str(error)) from error
    try:
        _take(descriptor, data, stopping_s)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {processes.identity(os.getpid())}".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, data: Path, stopping_s: float) -> None:
    if _locked(descriptor):
        return
    pid, _, identity = os.pread(descriptor, 1000, 0).decode().partition(" ")
    if pid and processes.alive(int(pid), identity):
        raise AlreadyRunningError(data, int(pid))
    if not processes.wait_until(lambda: _locked(descriptor), stopping_s):
        raise StillStoppingError(data, stopping_s)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
