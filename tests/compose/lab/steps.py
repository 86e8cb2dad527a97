"""Reports the running step, the time of each step, and the maximum disk space."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEGABYTE = 1_000_000


class Steps:
    """Reports the start and the end of each step; `folder` is where the disk is measured."""

    def __init__(self, folder: Path) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._folder = folder
        self._began = time.monotonic()
        self._free = shutil.disk_usage(folder).free
        self._most = 0

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One step: its name, and how long it took if it ended well."""
        self._console.print(f"[dim]{self._elapsed():6.1f} s[/dim]  {escape(what)}")
        began = time.monotonic()
        yield
        self._most = max(self._most, self._free - shutil.disk_usage(self._folder).free)
        self._console.print(f"[dim]{self._elapsed():6.1f} s[/dim]    [green]✓[/green] {time.monotonic() - began:.1f} s")

    def report(self, what: str) -> None:
        """A fact that belongs to the step under way."""
        self._console.print(f"            {escape(what)}")

    def fail(self, why: str) -> None:
        """Report the error that ended the test."""
        self._console.print(f"[red]compose-test failed:[/red] {escape(why)}")

    def summary(self) -> None:
        """Report the total time, and the maximum disk space at the end of a step."""
        disk = max(self._most, 0) / MEGABYTE
        self._console.print(f"compose-test passed: {self._elapsed():.0f} s, {disk:,.0f} MB of disk at the most")

    def _elapsed(self) -> float:
        return time.monotonic() - self._began
