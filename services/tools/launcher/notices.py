"""Reports the state of the processes: on the terminal while it is free, in a log, and in a file for the live view."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rich.console import Console
    from rich.status import Status

    from services.tools.launcher.folders import Folders
    from services.tools.launcher.process_spec import ProcessSpec

MAX_REASON = 300


class TerminalNotices:
    """Implements services.tools.launcher.supervisor.Notices."""

    def __init__(
        self, console: Console, folders: Folders, now: Callable[[], datetime], browse: Callable[[str], object]
    ) -> None:
        self._console = console
        self._folders = folders
        self._now = now
        self._browse = browse
        self._states: dict[str, str] = {}
        self._status: Status = console.status("")
        self._quiet = False

    def starting(self, part: ProcessSpec) -> None:
        """Show that the process is starting; one in the foreground gets the terminal."""
        self._note(part, "starting")
        if part.foreground:
            self._status.stop()
            self._quiet = True
        else:
            self._status.update(f"[dim]{part.name} …[/]")
            self._status.start()

    def ready(self, part: ProcessSpec, after_s: float) -> None:
        """Show that the process is ready."""
        if self._states[part.name] != "done":
            self._note(part, "runs")
        self._say(f"[green]✓[/] {part.does} [dim]({after_s:.1f} s)[/]")
        if part.page:
            self._browse(part.page)

    def died(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        """Show that the process died, and its last output."""
        self._note(part, f"died, starts again in {pause_s:g} s")
        self._say(f"[yellow]![/] {part.name} died, and starts again in {pause_s:g} s", why)

    def refused(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        """Show that the system does not start the process, and why."""
        self._note(part, f"cannot start, is tried every {pause_s:g} s")
        self._say(f"[yellow]![/] {part.name} cannot start, and is tried again every {pause_s:g} s", why)

    def again(self, part: ProcessSpec) -> None:
        """Show that the process was restarted."""
        self._note(part, "runs again")
        self._say(f"[green]✓[/] {part.name} was started again")

    def done(self, part: ProcessSpec) -> None:
        """Show that the process has finished."""
        self._note(part, "done")
        if part.foreground:
            self.loud()

    def loud(self) -> None:
        """Use the terminal again."""
        self._status.stop()
        if self._quiet and self._console.is_terminal:
            self._console.set_alt_screen(False)  # of a view that was killed
            self._console.show_cursor()
        self._quiet = False

    def stopping(self, part: ProcessSpec) -> None:
        """Show that the process receives SIGTERM."""
        self._note(part, "stopping")
        if not part.foreground:
            self.loud()
            self._status.update(f"[dim]stopping {part.name} …[/]")
            self._status.start()

    def stopped(self, part: ProcessSpec, *, by_itself: bool) -> None:
        """Show that the process has exited."""
        self._note(part, "stopped")
        if part.foreground:
            self.loud()
        elif not by_itself:
            self._say(f"[yellow]![/] {part.name} did not stop within {part.stop_within_s:g} s, and was killed")

    def _say(self, text: str, detail: str = "") -> None:
        """Print on the terminal while it is free, or into a file, whose disk may be full."""
        if self._quiet:
            return
        with suppress(OSError):
            self._console.print(text)
            if detail:
                self._console.print(f"  {detail[:MAX_REASON]}", style="dim", markup=False)

    def _note(self, part: ProcessSpec, state: str) -> None:
        """Write a line to the launcher's log, and the states of all processes for the live view.

        A full disk must not end the loop: the states are whole again after the next change that can be written.
        """
        self._states[part.name] = state
        with suppress(OSError):
            self._write(part, state)

    def _write(self, part: ProcessSpec, state: str) -> None:
        with (self._folders.logs / "launcher.log").open("a", encoding="utf-8") as log:
            log.write(f"{self._now().isoformat(timespec='milliseconds')} {part.name}: {state}\n")
        unfinished = self._folders.status.with_suffix(".new")
        unfinished.write_text(json.dumps(self._states), encoding="utf-8")
        unfinished.replace(self._folders.status)
