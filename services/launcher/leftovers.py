"""Stops what a launcher that was killed left running, by the process ids that it noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.launcher import processes

if TYPE_CHECKING:
    from pathlib import Path

STOP_S = 8.0


def note(run: Path, name: str, pid: int) -> None:
    """Write down a process that was started: its id, and which process that is."""
    (run / f"{name}.pid").write_text(f"{pid}\n{processes.identity(pid)}\n")


def forget(run: Path, name: str) -> None:
    """The process is gone."""
    (run / f"{name}.pid").unlink(missing_ok=True)


def noted(run: Path) -> dict[str, int]:
    """The noted processes that run, by name. An id that now is another process's is not among them."""
    found = {}
    for path in sorted(run.glob("*.pid")):
        pid, _, identity = path.read_text().strip().partition("\n")
        if pid.isdecimal() and processes.alive(int(pid), identity):
            found[path.stem] = int(pid)
    return found


def stop(run: Path, within_s: float = STOP_S) -> list[str]:
    """Stop all noted processes, at once, with their groups; gives their names. Removes the notes."""
    left = noted(run)
    for pid in left.values():
        processes.terminate(pid)
    processes.wait_until(lambda: not noted(run), within_s)
    for pid in left.values():
        processes.kill(pid)
    processes.wait_until(lambda: all(map(processes.group_gone, left.values())), processes.KILL_S)
    for path in run.glob("*.pid"):
        path.unlink(missing_ok=True)
    return list(left)
