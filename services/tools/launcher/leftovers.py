"""Stops the processes that a killed launcher left running, by their recorded ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.tools.launcher import processes

if TYPE_CHECKING:
    from pathlib import Path

STOP_S = 8.0


def note(run: Path, name: str, pid: int) -> None:
    """Record a started process: its id and its identity."""
    (run / f"{name}.pid").write_text(f"{pid}\n{processes.identity(pid)}\n")


def forget(run: Path, name: str) -> None:
    """Remove the record of a process."""
    (run / f"{name}.pid").unlink(missing_ok=True)


def noted(run: Path) -> dict[str, int]:
    """Return the recorded processes that still run, by name; ids that were reused are ignored."""
    running = {}
    for path in sorted(run.glob("*.pid")):
        try:
            pid, _, identity = path.read_text().strip().partition("\n")
        except FileNotFoundError:  # the process was forgotten meanwhile
            continue
        if pid.isdecimal() and processes.alive(int(pid), identity):
            running[path.stem] = int(pid)
    return running


def stop(run: Path, within_s: float = STOP_S) -> list[str]:
    """Stop all recorded processes with their groups; return their names, and remove the records."""
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
