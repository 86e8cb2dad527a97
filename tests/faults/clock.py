"""A system clock of the parts of a loop, which a fault can set while they run."""

from __future__ import annotations

import os
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).with_suffix(".c")


class SystemClock:
    """The clock of all processes with this `environment`."""

    def __init__(self, folder: Path) -> None:
        library, self._seconds = folder / "clock.so", folder / "clock"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)], check=True)  # noqa: S607
        self._seconds.touch()
        self._set(0)
        self.environment = {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(self._seconds)}

    @contextmanager
    def ahead(self, seconds: int) -> Iterator[None]:
        """Set the clock ahead for a while, or back if negative."""
        self._set(seconds)
        try:
            yield
        finally:
            self._set(0)

    def _set(self, seconds: int) -> None:
        file = os.open(self._seconds, os.O_WRONLY)
        try:
            os.write(file, struct.pack("l", seconds))
        finally:
            os.close(file)
