"""Commands on a checkpoint as processes of their own, which a test kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.spark_app.running import CHECKOUT, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class CommandProcess:
    """`stateloop` with these arguments: a process group of its own."""

    def __init__(self, environment: Mapping[str, str], log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "services.tools.cli", *arguments],
                cwd=CHECKOUT,
                env=os.environ | dict(environment) | {"STATELOOP_DRIVER_MEMORY": "1g"},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """The end of what it has printed, and others before it to the same log."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it with its JVM; it may be dead already."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE_S)


@contextmanager
def running(environment: Mapping[str, str], log: Path, *arguments: str) -> Iterator[CommandProcess]:
    """Run a command as a process, which is killed at the end."""
    process = CommandProcess(environment, log, *arguments)
    try:
        yield process
    finally:
        process.kill()
