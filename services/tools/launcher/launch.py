"""A launch from its start to its end: lock, clean, start, watch, stop."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from services.tools.launcher import leftovers
from services.tools.launcher.child import Child
from services.tools.launcher.lock import alone
from services.tools.launcher.notices import TerminalNotices
from services.tools.launcher.supervisor import Supervisor
from services.tools.launcher.watchdog import Watchdog

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from services.tools.launcher.folders import Folders
    from services.tools.launcher.process_spec import ProcessSpec


def launch(  # noqa: PLR0913  # the parts of a launch
    parts: Sequence[ProcessSpec],
    folders: Folders,
    console: Console,
    stopping: threading.Event,
    *,
    fresh: bool,
    browse: Callable[[str], object],
) -> None:
    """Start all parts, keep them running until `stopping` is set, stop them all. Raises LaunchError.

    `browse` receives the address of each page for users.
    """
    with alone(folders.lock) as lock:
        clean(folders, console, fresh=fresh)
        notices = TerminalNotices(console, folders, lambda: datetime.now(UTC), browse)
        with Watchdog(folders.run, lock) as watchdog:

            def pause(seconds: float) -> bool:
                watchdog.ensure()
                return stopping.wait(seconds)

            start = partial(Child, folders=folders)
            supervisor = Supervisor(parts, start, notices, folders.logs, clock=time.monotonic, pause=pause)
            try:
                if supervisor.start():
                    supervisor.watch()
            finally:
                supervisor.stop()
                notices.loud()
    console.print("Stopped. The next start goes on from here.")


def clean(folders: Folders, console: Console, *, fresh: bool) -> None:
    """Stop the processes of a killed launcher, and remove old files; print both."""
    if left := leftovers.stop(folders.run):
        console.print(f"Stopped what a killed run had left: {', '.join(left)}")
    if fresh and (state := folders.state()):
        console.print(f"Starting from nothing: removing {', '.join(map(str, state))}")
        folders.forget()
    folders.prepare()
