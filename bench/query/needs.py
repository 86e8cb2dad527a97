"""The programs that the benchmark takes from Debian: load generators in C, what builds one, and Redis."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from bench.harness.errors import BenchError, last_line

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = {"wrk": "wrk", "redis-server": "redis-server", "redis-benchmark": "redis-tools", "cc": "build-essential"}
"""The package of each program."""


class ProgramMissingError(BenchError):
    """A program is not there, and could not be installed."""

    def __init__(self, programs: list[str], why: str) -> None:
        packages = " ".join(sorted({PACKAGES[one] for one in programs}))
        super().__init__(f"{', '.join(programs)} missing ({why}): install with apt-get install {packages}")
        self.programs = programs


def require(programs: tuple[str, ...], report: Callable[[str], None]) -> None:
    """See that these are there; as root, install what is not. Raises ProgramMissingError."""
    missing = [one for one in programs if shutil.which(one) is None]
    if not missing:
        return
    if os.geteuid() or shutil.which("apt-get") is None:
        raise ProgramMissingError(missing, "and only root can install, with apt-get")
    packages = sorted({PACKAGES[one] for one in missing})
    report(f"installing {', '.join(packages)}")
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}  # starts no service
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode or any(shutil.which(one) is None for one in missing):
        raise ProgramMissingError(missing, last_line(done.stdout))
