"""`stateloop up`."""

import os
import signal
from importlib.util import find_spec
from typing import Annotated

from cyclopts import Parameter

from services.runtime.command_line import CommandError
from services.tools.cli.app import WITHOUT_SPARK

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def up(
    *,
    headless: Annotated[bool, Parameter(help="without the live view")] = False,
    fresh: Annotated[bool, Parameter(help="forget all records and states first")] = False,
) -> None:
    """Run the whole loop here. Ctrl-C stops it."""
    from contracts.settings import read
    from services.runtime.shutdown import stop_event
    from services.runtime.terminal import TerminalConsole
    from services.tools.broker import jars
    from services.tools.launcher.browser import browser, browsing
    from services.tools.launcher.folders import Folders
    from services.tools.launcher.launch import launch
    from services.tools.launcher.process_specs import process_specs
    from services.tools.launcher.settings import LauncherSettings

    if find_spec("pyspark") is None:
        raise CommandError(WITHOUT_SPARK)
    console = TerminalConsole(highlight=False, soft_wrap=True)
    settings = read(LauncherSettings)
    jars.main()
    stopping = stop_event(STOP_SIGNALS)
    folders = Folders(settings.data)
    wanted = settings.browse and not headless
    browse = browser(os.environ, wanted=browsing(os.environ, wanted=wanted, terminal=console.is_terminal))
    specs = process_specs(settings, folders, headless=headless)
    launch(specs, folders, console, stopping, fresh=fresh, browse=browse)
