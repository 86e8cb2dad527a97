"""Runs the whole loop on this machine: `python -m services.launcher [--headless] [--fresh]`. Ctrl-C stops it."""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from pydantic import ValidationError
from rich.console import Console

from services.launcher.errors import LaunchError
from services.launcher.folders import Folders
from services.launcher.launch import launch
from services.launcher.parts import parts
from services.launcher.settings import LauncherSettings

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run until stopped: 0. Or return 1 after a line that says what to do."""
    console = Console(highlight=False, soft_wrap=True)
    options = _options()
    stopping = threading.Event()
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stopping.set())
    try:
        settings = LauncherSettings()
        folders = Folders(settings.data)
        launch(parts(settings, folders, headless=options.headless), folders, console, stopping, fresh=options.fresh)
    except ValidationError as error:
        console.print(f"stateloop: {_refused(error)}", style="red", markup=False)
        return 1
    except LaunchError as error:
        console.print(f"stateloop: {error}", style="red", markup=False)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m services.launcher", description="Run the whole loop here.")
    parser.add_argument("--headless", action="store_true", help="without the live view")
    parser.add_argument("--fresh", action="store_true", help="forget all records and states first")
    return parser.parse_args()


def _refused(error: ValidationError) -> str:
    return "; ".join(f"STATELOOP_{str(wrong['loc'][0]).upper()}: {wrong['msg']}" for wrong in error.errors())


if __name__ == "__main__":
    sys.exit(main())
