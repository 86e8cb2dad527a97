"""Runs the commands of a page one after the other, as a reader does in one terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BLOCK = re.compile(r"(?:^    .+\n)+", re.MULTILINE)
AGAIN_S = 1.0


def commands(section: str) -> list[str]:
    """Return the lines of the indented blocks of a section."""
    return [line.strip() for block in BLOCK.findall(section) for line in block.splitlines()]


class Shell:
    """A terminal: folder and variables last from one command to the next."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self._state = folder / "terminal"

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        script = f'{command}\ncode=$?\n{{ pwd; env -0; }} > "{self._state}"\nexit $code'
        done = subprocess.run(
            ["bash", "-c", script],  # noqa: S607
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        folder, _, variables = self._state.read_text().partition("\n")
        self.folder = Path(folder)
        self.environment = dict(entry.partition("=")[::2] for entry in variables.split("\0") if entry)
        return done

    def succeed(self, command: str) -> str:
        """Run a command to its end, and return its output. Raises AssertionError."""
        done = self.run(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def repeat(self, command: str, expected: str, within_s: float) -> str:
        """Run a command until its output has a text, and return the output. Raises AssertionError."""
        end = time.monotonic() + within_s
        while expected not in (done := self.run(command)).stdout:
            assert time.monotonic() < end, f"{command}: {done.stdout}{done.stderr}"
            time.sleep(AGAIN_S)
        return done.stdout

    @contextmanager
    def in_background(self, command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command, with its output in a file, and stop it as Ctrl-C does at the end."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", command],  # noqa: S607
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                os.killpg(process.pid, signal.SIGINT)
                process.wait()
