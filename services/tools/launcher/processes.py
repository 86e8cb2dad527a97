"""Identifies processes by their ids, and stops them with their groups."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PROC = Path("/proc")
PAUSE_S = 0.05
KILL_S = 5.0


def identity(pid: int) -> str | None:
    """Return the identity of a process, which no later one with its id has; None for a dead one."""
    if not (PROC / "self" / "stat").exists():
        return _identity_from_ps(pid)
    try:
        stat = (PROC / str(pid) / "stat").read_text()
        boot = (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return None
    # proc(5): the name, in brackets, may hold anything; after it the state is field 3, the start time field 22.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def alive(pid: int, was: str) -> bool:
    """Return whether this very process runs."""
    return identity(pid) == was


def terminate(pid: int) -> None:
    """Send SIGTERM to one process, which stops its own group."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def kill(pid: int) -> None:
    """Kill a process, and if it leads a group, all that are left of the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # raises for one that leads none: no group has its id
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def group_gone(pgid: int) -> bool:
    """Return whether all processes of a group have exited; zombies do not count."""
    if not (PROC / "self" / "stat").exists():
        return _is_empty(pgid)
    if _is_empty(pgid):
        return True
    return not any(_member(stat, pgid) for stat in PROC.glob("[0-9]*/stat"))


def wait_until(condition: Callable[[], bool], within_s: float) -> bool:
    """Return whether the condition became true within `within_s` seconds."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(PAUSE_S)
    return True


def _is_empty(pgid: int) -> bool:
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _member(stat: Path, pgid: int) -> bool:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and fields[2] == str(pgid)


def _identity_from_ps(pid: int) -> str | None:
    command = ["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
