"""Outlives the launcher, to stop what it started: `python -m services.launcher.watchdog FOLDER`.

Its standard input is a pipe that only the launcher holds open. When that closes, however the launcher ended, the
watchdog stops every process that is still noted in the folder, and goes too. (Linux could signal the children at the
death of their parent, but not their children, of which Spark has one; and other systems could not.)
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from services.launcher import leftovers


class Watchdog:
    """The launcher's end of it. A context manager; leave it when all parts are stopped."""

    def __init__(self, run: Path, lock: int) -> None:
        self._run = run
        self._lock = lock

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ensure(self) -> None:
        """Start it again if somebody killed it."""
        if self._process.poll() is not None:
            self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.launcher.watchdog", str(self._run.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[self._lock],
        )


def main() -> int:
    """Wait for the launcher's end, and stop what is left."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    leftovers.stop(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
