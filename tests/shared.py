"""Processes that all processes of a test run share: the first that needs one starts it, and the run ends it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = "TEST_RUN_FOLDER"
"""The environment variable with the folder of the run, which the processes of pytest-xdist inherit."""
PID = "TEST_RUN_PID"
"""The environment variable with the number of the process that began the run."""
SUFFIX = ".process.json"


def begin() -> None:
    """Create the folder of the run, in the process that starts all others."""
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="stateloop-tests-")
    os.environ[PID] = str(os.getpid())


def end() -> None:
    """Kill the shared processes, and remove the folder of the run; in the process that began it."""
    folder = Path(os.environ.pop(FOLDER))
    for described in folder.glob(f"*{SUFFIX}"):
        with suppress(ProcessLookupError):  # Ctrl-C has ended it
            os.kill(json.loads(described.read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)  # a process that ends may still write


def running() -> bool:
    """Return whether the process that began the run still exists."""
    try:
        os.kill(int(os.environ[PID]), 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold a lock of this name among the processes of the run."""
    with (Path(os.environ[FOLDER]) / f"{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_process(name: str, start: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Return the description of a shared process: `pid`, and how to reach it.

    The first process of the run that asks starts it: `start` gets the folder of the run.
    """
    folder = Path(os.environ[FOLDER])
    described = folder / f"{name}{SUFFIX}"
    with exclusive(name):
        if not described.exists():
            described.write_text(json.dumps(start(folder)), encoding="utf-8")
        found: dict[str, Any] = json.loads(described.read_text(encoding="utf-8"))
    return found
