"""Runs the whole loop on this machine: `stateloop up [--headless] [--fresh]`. Ctrl-C stops it."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from rich.console import Console

from contracts.errors import StateloopError
from contracts.settings import read
from services.launcher.browser import browser, browsing
from services.launcher.folders import Folders
from services.launcher.launch import launch
from services.launcher.process_specs import process_specs
from services.launcher.settings import LauncherSettings
from services.runtime.shutdown import stop_event

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run until stopped: 0. Or return 1 after one line with the remedy."""
    console = Console(highlight=False, soft_wrap=True)
    options = _options()
    stopping = stop_event(STOP_SIGNALS)
    try:
        settings = read(LauncherSettings)
        folders = Folders(settings.data)
        wanted = settings.browse and not options.headless
        browse = browser(os.environ, wanted=browsing(os.environ, wanted=wanted, terminal=console.is_terminal))
        found = process_specs(settings, folders, headless=options.headless)
        launch(found, folders, console, stopping, fresh=options.fresh, browse=browse)
    except StateloopError as error:
        console.print(f"stateloop: {error}", style="red", markup=False)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="stateloop up", description="Run the whole loop here.")
    parser.add_argument("--headless", action="store_true", help="without the live view")
    parser.add_argument("--fresh", action="store_true", help="forget all records and states first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
