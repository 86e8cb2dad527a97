"""Shows the loop at work: `python -m services.live`. Ctrl-C or SIGTERM ends it."""

from __future__ import annotations

import signal
import sys
import threading
from functools import partial

from pydantic import ValidationError
from rich.console import Console
from rich.live import Live

from contracts.application import load
from contracts.errors import StateloopError
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
        settings = LiveSettings()
        shown = partial(views, settings, load(settings.application), stopping)
    except (ValidationError, StateloopError) as error:
        print(f"stateloop live: {_refused(error)}", file=sys.stderr, flush=True)
        return 1
    console = Console(highlight=False)
    if not console.is_terminal:
        for view in shown(settings.line_every.total_seconds()):
            console.print(line(view), markup=False, soft_wrap=True)
        return 0
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for view in shown(FRAME_S):
            live.update(screen(view, *console.size), refresh=True)
    return 0


def _refused(error: ValidationError | StateloopError) -> str:
    if isinstance(error, StateloopError):
        return str(error)
    return "; ".join(f"STATELOOP_{str(wrong['loc'][0]).upper()}: {wrong['msg']}" for wrong in error.errors())


if __name__ == "__main__":
    sys.exit(main())
