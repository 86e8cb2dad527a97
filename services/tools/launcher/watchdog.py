"""Stops the processes of a launcher that was killed: `python -m services.tools.launcher.watchdog FOLDER`.

Its standard input is a pipe that only the launcher holds open. When that closes, however the launcher ended, the
watchdog stops every process that is recorded in the folder, and exits. (Linux could signal the children at the
death of their parent, but not their children, of which Spark has one; and other systems could not.)
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from services.tools.launcher import leftovers


class Watchdog:
    """Starts the watchdog; a context manager, to leave when all processes have stopped."""

    def __init__(self, run: Path, lock: int) -> None:
        self._run = run
        self._lock = lock

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ensure(self) -> None:
        """Restart it if it was killed."""
        if self._process.poll() is not None:
            self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.tools.launcher.watchdog", str(self._run.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[self._lock],
        )


def main() -> int:
    """Wait until the launcher exits, and stop the processes that are left."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    leftovers.stop(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
