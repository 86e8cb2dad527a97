"""Flink's job in a JVM of its own, as in application mode. It takes commands on its standard input."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from bench.harness.jobs import OPEN
from bench.harness.plan import CHECKOUT
from bench.lifecycle.engine import MORE, PARTITIONS
from bench.lifecycle.errors import CommandFailedError
from bench.peers.build import FOLDER as PEERS
from bench.peers.jdk import tool

if TYPE_CHECKING:
    from pathlib import Path

    from bench.harness.plan import Site

SOURCES = CHECKOUT / "bench" / "lifecycle" / "flink"


class Flink:
    """See `Engine`. Savepoints are in the canonical format."""

    name = "flink"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._folder = site.folder / "run" / "lifecycle-flink"
        for model in ("before", "after", "retyped"):
            _compile(self._folder, model)
        self._start("before", PARTITIONS, "-")
        self._saved = ""

    def savepoint(self) -> None:
        """See `Engine.savepoint`."""
        self._job.command(f"savepoint file://{self._folder / 'savepoints'}")

    def change(self) -> None:
        """See `Engine.change`."""
        self._saved = self._stop()
        self._start("after", PARTITIONS, self._saved)

    def roll_back(self) -> None:
        """See `Engine.roll_back`. The second model's state does not fit: the savepoint before is left."""
        self._job.stop()
        self._start("before", PARTITIONS, self._saved)

    def rescale(self) -> None:
        """See `Engine.rescale`."""
        self._start("before", MORE, self._stop())

    def stop(self) -> None:
        """See `Engine.stop`."""
        self._job.stop()

    def refusal(self) -> str:
        """Start a job whose state has a field of another type; gives the error with which it ends."""
        self._start("retyped", PARTITIONS, self._stop())
        return self._job.end()

    def _stop(self) -> str:
        return self._job.command(f"stop file://{self._folder / 'savepoints'}")

    def _start(self, model: str, parallelism: int, savepoint: str) -> None:
        self._job = FlinkJob(self._site, self._folder, model, parallelism, savepoint)


class FlinkJob:
    """The JVM of one job, which takes commands on its standard input."""

    def __init__(self, site: Site, folder: Path, model: str, parallelism: int, savepoint: str) -> None:
        self._log = site.log(f"lifecycle-flink-{model}-{parallelism}")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        java = [tool("java"), "-Xms2g", "-Xmx2g", *OPEN, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        path = f"{folder / model}:{PEERS}/flink/classes:{PEERS}/flink/*"
        given = [site.boot, "lifecycle-flink", str(folder / "checkpoint"), str(parallelism), savepoint]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*java, "-cp", path, "StateJob", *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def command(self, line: str) -> str:
        """Give a command, and return the path of the savepoint. Raises CommandFailedError."""
        with suppress(BrokenPipeError):
            print(line, file=self._input, flush=True)
        for printed in self._output:
            if printed.startswith("DONE "):
                return printed.split()[1]
            if printed.startswith(("FAILED", "ENDED")):
                break
        raise CommandFailedError("flink", self._log)

    def end(self) -> str:
        """Wait for its end, and return the error that it prints."""
        return next((one.removeprefix("ENDED ").strip() for one in self._output if one.startswith("ENDED ")), "none")

    def stop(self) -> None:
        """Cancel it."""
        self._process.kill()
        self._process.communicate()

    @property
    def _input(self) -> IO[str] | None:
        return self._process.stdin

    @property
    def _output(self) -> IO[str]:
        if self._process.stdout is None:
            raise CommandFailedError("flink", self._log)
        return self._process.stdout


def _compile(folder: Path, model: str) -> None:
    """Compile the job with one model of the state."""
    jars, files = f"{PEERS}/flink/classes:{PEERS}/flink/*", [SOURCES / "StateJob.java", SOURCES / model / "Device.java"]
    command = [tool("javac"), "-nowarn", "--release", "17", "-cp", jars, "-d", str(folder / model), *map(str, files)]
    subprocess.run(command, check=True)
