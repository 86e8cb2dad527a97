"""Stateloop's job, and the commands that an operator runs for it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from bench.harness.process import Group
from bench.lifecycle.engine import MORE, PARTITIONS
from bench.lifecycle.errors import CommandFailedError

if TYPE_CHECKING:
    from bench.harness.plan import Site

PATIENCE_S = 300.0
LOOK_S = 0.05


class Stateloop:
    """See `Engine`. The job that is replaced runs until the new state is complete."""

    name = "stateloop"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._folder = site.folder / "run" / "lifecycle-stateloop"
        self._jobs: list[Group] = []
        self._start("before", PARTITIONS)

    def savepoint(self) -> None:
        """See `Engine.savepoint`."""
        self._finish(self._command("before", PARTITIONS, "savepoint", "create", str(self._folder / "savepoints")))

    def change(self) -> None:
        """See `Engine.change`."""
        self._rebuild("after", PARTITIONS)

    def roll_back(self) -> None:
        """See `Engine.roll_back`."""
        self._rebuild("before", PARTITIONS, "--rollback")

    def rescale(self) -> None:
        """See `Engine.rescale`."""
        self._rebuild("before", MORE)

    def stop(self) -> None:
        """See `Engine.stop`."""
        for one in self._jobs:
            one.stop()

    def _rebuild(self, model: str, partitions: int, *options: str) -> None:
        """Build a generation, and start its job as soon as the running one has ended."""
        old, command = self._jobs[-1], self._command(model, partitions, "rebuild", *options)
        deadline = time.monotonic() + PATIENCE_S
        while not old.ended():
            if time.monotonic() > deadline:
                raise CommandFailedError(self.name, self._log)
            if command.returncode():
                self._finish(command)
            time.sleep(LOOK_S)
        self._start(model, partitions)
        self._finish(command)

    def _start(self, model: str, partitions: int) -> None:
        self._jobs.append(self._process(model, partitions, "spark_app"))

    def _command(self, model: str, partitions: int, *arguments: str) -> Group:
        return self._process(model, partitions, "services.cli", *arguments)

    def _process(self, model: str, partitions: int, module: str, *arguments: str) -> Group:
        environment = {
            "STATELOOP_APPLICATION": f"bench.lifecycle.application:{model}",
            "STATELOOP_KAFKA": self._site.boot,
            "STATELOOP_CHECKPOINT": str(self._folder / "checkpoint"),
            "STATELOOP_CATCH_UP": "false",
            "STATELOOP_JARS": str(self._site.jars.parent),
            "STATELOOP_BATCH": "PT10S",
            "STATELOOP_STATE_PARTITIONS": str(partitions),
            "SPARK_LOCAL_DIRS": str(self._folder / "scratch"),
        }
        self._log = self._site.log(f"lifecycle-stateloop-{int(time.time() * 1000)}-{module}")
        return Group([sys.executable, "-m", module, *arguments], environment, self._log)

    def _finish(self, command: Group) -> None:
        """Wait for a command. Raises CommandFailedError."""
        deadline = time.monotonic() + PATIENCE_S
        while not command.ended() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if command.returncode() != 0:
            raise CommandFailedError(self.name, self._log)
