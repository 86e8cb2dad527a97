"""Many who watch one key: a program in C, built when it is needed, so that what is late is not the load."""

from __future__ import annotations

import select
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from bench.harness.errors import last_line
from bench.query.generators import LoadFailedError

SOURCE = Path(__file__).with_suffix(".c")
CLOSE_S = 20.0


class Watchers:
    """So many connections that watch what is at this path, for the time of a `with`. Raises LoadFailedError."""

    def __init__(self, port: int, path: str, count: int) -> None:
        self._folder = TemporaryDirectory(prefix="watchers-")
        program = Path(self._folder.name) / "watchers"
        command = ["cc", "-O2", "-Wall", "-Werror", "-o", str(program), str(SOURCE)]
        built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if built.returncode:
            raise LoadFailedError("cc", last_line(built.stdout))
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [program, str(port), path, str(count)], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
        )
        self._complete = 0
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def have(self, version: int, within_s: float) -> bool:
        """Wait until all have this version, or one that was written after it. Raises LoadFailedError."""
        end = time.monotonic() + within_s
        while self._complete < version and (left := end - time.monotonic()) > 0:
            self._look(left)
        return self._complete >= version

    def arrivals(self) -> dict[int, list[float]]:
        """Stop, and return when each subscriber received each version, by time.monotonic. Raises LoadFailedError."""
        output, why = self._process.communicate(timeout=CLOSE_S)
        if self._process.returncode:
            raise LoadFailedError("watchers", last_line(why.decode()))
        found: defaultdict[int, list[float]] = defaultdict(list)
        for version, at in (line.split() for line in (self._rest + output).splitlines()):
            if version != b"complete":
                found[int(version)].append(int(at) / 1e9)
        return dict(found)

    def _look(self, within_s: float) -> None:
        assert self._process.stdout  # noqa: S101  # it is a pipe
        if not select.select([self._process.stdout], [], [], within_s)[0]:
            return
        output = self._process.stdout.read(64 * 1024)
        if not output:
            self.arrivals()  # raises the reason of its end
            raise LoadFailedError("watchers", "it ended")
        *lines, self._rest = (self._rest + output).split(b"\n")
        self._complete = max(self._complete, *(int(line.split()[1]) for line in lines), 0)
