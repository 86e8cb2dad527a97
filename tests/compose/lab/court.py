"""Has the stack's snapshots judged from where its broker's port is published."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.compose.lab.stack import Stack
    from tests.compose.lab.steps import Steps

CHECKOUT = Path(__file__).parents[3]


class Court:
    """Runs the judge next to the stack, on the day that the stack replays."""

    def __init__(self, stack: Stack, steps: Steps, inside: tuple[str, ...]) -> None:
        self._stack, self._steps, self._inside = stack, steps, inside

    def seen(self, count: int) -> None:
        """Wait until so many snapshots were published."""
        self._judge(f"--seen={count}")

    def crash_each(self, crashes: Iterable[tuple[str, int]]) -> None:
        """Each container crashes once after so many snapshots, while the day is replayed, and comes back by itself."""
        for service, count in crashes:
            with self._steps.step(f"{service} crashes after {count} snapshots and comes back by itself"):
                self.seen(count)
                self._stack.crash(service)

    def agree(self, *, republished: bool = False) -> None:
        """Every flight of the day agrees, and goes on doing so when the job has ended two more batches.

        Every version was published, unless the job has published its windows anew.
        """
        also = ("--republished",) if republished else ()
        self._judge(*also)
        after = self._stack.batches() + 1
        self._stack.wait(lambda: self._stack.batches() > after, "two more batches")
        seen = json.loads(self._judge("--patience=30", *also).splitlines()[-1])
        self._steps.report(", ".join(f"{what} {count}" for what, count in seen.items()))

    def run_module(self, module: str, *arguments: str) -> str:
        """Run a module of this checkout where the published ports are; gives what it printed."""
        command = (*self._inside, sys.executable, "-m", module, *arguments)
        return self._stack.commands.run(*command, cwd=CHECKOUT)

    def _judge(self, *arguments: str) -> str:
        set_to = self._stack.commands.environment
        where = (f"--kafka=127.0.0.1:{set_to['KAFKA_PORT']}", f"--day={set_to['REPLAY_FROM']}")
        return self.run_module("tests.compose.lab.judge", *where, *arguments)
