"""A child process in its own session, with its output in a log and its id recorded."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from services.tools.launcher import leftovers, processes
from services.tools.launcher.errors import StartFailedError
from services.tools.launcher.last_error import last_error

if TYPE_CHECKING:
    from services.tools.launcher.folders import Folders
    from services.tools.launcher.process_spec import ProcessSpec

TAIL = 64 * 1024


class Child:
    """The process of one specification; each start creates a new one. Raises StartFailedError if the system refuses."""

    def __init__(self, part: ProcessSpec, folders: Folders) -> None:
        self._part = part
        self._run = folders.run
        self._log = folders.logs / f"{part.name}.log"
        try:
            self._begin = self._log.stat().st_size if self._log.exists() else 0
            self._process = self._started()
            self._note()
        except OSError as error:
            raise StartFailedError(part.name, str(error), self._log) from error

    @property
    def pid(self) -> int:
        """The id of the process, and of its group unless it is in the foreground."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return the beginning of its output since its start."""
        with self._log.open("rb") as log:
            log.seek(self._begin)
            return log.read(TAIL).decode(errors="replace")

    def last_error(self) -> str:
        """Return the line of its output that explains why it exited."""
        with self._log.open("rb") as log:
            log.seek(max(self._begin, self._log.stat().st_size - TAIL))
            return last_error(log.read().decode(errors="replace"))

    def stop(self) -> bool:
        """Send SIGTERM, and kill the group if it does not exit; return whether it exited by itself."""
        processes.terminate(self.pid)
        stopped = self._ended(self._part.stop_within_s)
        self.clear()
        return stopped

    def clear(self) -> None:
        """Kill what is left of its group, and wait until all have exited."""
        if self._process.poll() is None:
            self._process.kill()
        if not self._part.foreground:
            processes.kill(self.pid)
        self._process.wait(processes.KILL_S)
        processes.wait_until(lambda: processes.group_gone(self.pid), processes.KILL_S)
        leftovers.forget(self._run, self._part.name)

    def _started(self) -> subprocess.Popen[bytes]:
        part = self._part
        with self._log.open("ab") as log:
            return subprocess.Popen(
                part.command,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **part.env},
                stdin=None if part.foreground else subprocess.DEVNULL,
                stdout=None if part.foreground else log,
                stderr=log,
                start_new_session=not part.foreground,
            )

    def _note(self) -> None:
        """Record the process, or kill it: nothing would stop one without a record after the end of the launcher."""
        try:
            leftovers.note(self._run, self._part.name, self.pid)
        except OSError:
            self.clear()
            raise

    def _ended(self, within_s: float) -> bool:
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True
