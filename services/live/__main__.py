"""Shows the loop at work: `stateloop live`. Ctrl-C or SIGTERM ends it."""

from __future__ import annotations

import signal
import sys
import threading
from functools import partial

from rich.console import Console
from rich.live import Live

from contracts.errors import StateloopError
from contracts.model.application import Application, load
from contracts.settings import read
from services.live.line import line
from services.live.screen import screen
from services.live.settings import LiveSettings
from services.live.views import views

FRAME_S = 0.25


def main() -> int:
    """Show until told to stop: 0. Or return 1 after a line that says what to do."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    try:
        settings = read(LiveSettings)
        show(settings, load(settings.application), stopping)
    except StateloopError as error:
        print(f"stateloop live: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def show(settings: LiveSettings, application: Application, stopping: threading.Event) -> None:
    """On a terminal the screen, elsewhere a line every so often. Raises StateloopError."""
    console = Console(highlight=False)
    shown = partial(views, settings, application, stopping)
    if not console.is_terminal:
        for view in shown(settings.line_every.total_seconds()):
            console.print(line(view), markup=False, soft_wrap=True)
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for view in shown(FRAME_S):
            live.update(screen(view, *console.size), refresh=True)


if __name__ == "__main__":
    sys.exit(main())
