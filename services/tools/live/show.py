"""Shows the loop in the terminal until a signal stops it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from rich.live import Live

from contracts.settings import Duration, EnvironmentSettings
from services.runtime.terminal import TerminalConsole
from services.tools.live.feed import Feed
from services.tools.live.screen import line, screen
from services.tools.live.view import LiveView

FRAME_S = 0.25


class LiveSettings(EnvironmentSettings):
    """The settings of the view alone: STATELOOP_STATUS and STATELOOP_LINE_EVERY."""

    status: Path | None = None
    """The launcher's file with the state of each process."""
    line_every: Duration = timedelta(seconds=5)
    """The interval between two lines when the output is not a terminal."""


async def show(settings: LiveSettings, urls: list[str], token: str | None, application: str | None) -> None:
    """Draw the screen on a terminal; otherwise print a line at each interval.

    `urls`: of instances of the query service. `token`: may read all keys, where the service requires one.
    """
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    console, view = TerminalConsole(highlight=False), LiveView()
    async with Feed(view, urls, token, settings.status, application):
        if not console.is_terminal:
            while not await _wait(stopping, settings.line_every.total_seconds()):
                console.print(line(view), markup=False, soft_wrap=True)
            return
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while not await _wait(stopping, FRAME_S):
                live.update(screen(view, *console.size), refresh=True)


async def _wait(stopping: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)
    return stopping.is_set()
