"""The checks before a JVM is started: each one passes, or raises an error with the remedy."""

from __future__ import annotations

import errno
import fcntl
import shutil
import socket
from typing import TYPE_CHECKING

from services.tools.broker.errors import DiskFullError, FolderBusyError, FolderUnusableError, PortBusyError
from services.tools.broker.properties import HOST

if TYPE_CHECKING:
    from pathlib import Path

MB = 1 << 20


def require_disk(folder: Path, needed_mb: int, setting: str) -> None:
    """Make the folder if need be, and require so much free space on its disk. `setting` is its variable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free_mb = shutil.disk_usage(folder).free // MB
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFullError(folder, 0, needed_mb, setting) from error
        raise FolderUnusableError(folder, error.strerror or str(error), setting) from error
    if free_mb < needed_mb:
        raise DiskFullError(folder, free_mb, needed_mb, setting)


def require_free_port(port: int) -> None:
    """Require that a port of this machine is free, and that this user may listen on it."""
    with socket.socket() as probe:
        # As Java does it: connections of a broker that was killed linger, and do not make its port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError as error:
            raise PortBusyError(port, "STATELOOP_BROKER_PORT") from error


def require_idle(log_dir: Path) -> None:
    """Require that no other broker holds Kafka's own lock on its log folder."""
    lock = log_dir / ".lock"
    if not lock.exists():
        return
    with lock.open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FolderBusyError(log_dir.parent) from error
