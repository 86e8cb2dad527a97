"""Runs commands: their output goes to a log, and what fails or takes too long ends the test with its last lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from tests.compose.lab.errors import CommandFailedError

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 1_800.0
"""On a machine with a load of 30, the images take more than ten minutes."""
TAIL = 3_000


class Commands:
    """Commands with an environment and a log in common."""

    def __init__(self, log: Path, environment: dict[str, str]) -> None:
        self.log = log
        self.environment = environment

    def run(
        self, *command: str, cwd: Path | None = None, patience_s: float = PATIENCE_S, errors_too: bool = False
    ) -> str:
        """Run one to its end; gives what it printed, with its errors if they are wanted. Raises CommandFailedError."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\n{time.strftime('%H:%M:%S')} $ {' '.join(command)}\n")
        began = self.log.stat().st_size
        try:
            with self.log.open("ab") as errors:
                done = subprocess.run(
                    command,
                    cwd=cwd,
                    env=os.environ | self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if errors_too else errors,
                    timeout=patience_s,
                    check=True,
                )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            self._write(error.stdout or b"")
            why = (
                f"took more than {patience_s:.0f} s"
                if isinstance(error, subprocess.TimeoutExpired)
                else f"ended with {error.returncode}"
            )
            raise CommandFailedError(command, why, self._tail(began), self.log) from error
        self._write(done.stdout)
        return done.stdout.decode()

    def succeeds(self, *command: str, patience_s: float = PATIENCE_S) -> bool:
        """Whether a command ends with 0."""
        try:
            self.run(*command, patience_s=patience_s)
        except (CommandFailedError, OSError):
            return False
        return True

    def _write(self, output: bytes) -> None:
        with self.log.open("ab") as log:
            log.write(output)

    def _tail(self, began: int) -> str:
        return self.log.read_bytes()[began:].decode(errors="replace")[-TAIL:]


def has(program: str) -> bool:
    """Whether a program is on the path, or where only root has it."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None
