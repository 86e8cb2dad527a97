"""A launch of tiny parts: `python -m tests.services.tools.launcher.tiny FOLDER [PART…]`, stopped like the real one."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from rich.console import Console

from services.tools.launcher.errors import LaunchError
from services.tools.launcher.folders import Folders
from services.tools.launcher.launch import launch
from services.tools.launcher.process_spec import ProcessSpec
from services.tools.launcher.readiness import Finished, OutputHas, Runs
from services.tools.launcher.restarts import RestartPolicy

SERVE = "print('ready', flush=True); import signal; signal.pause()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SERVE}"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', {SERVE!r}])
print('child', child.pid, flush=True)
{SERVE}
"""
QUICK = RestartPolicy(most=2, within_s=60, first_pause_s=0.01)
PARTS = {
    "once": ProcessSpec("once", "it is done", (sys.executable, "-c", "print('made it')"), Finished(), finishes=True),
    "server": ProcessSpec("server", "it serves", (sys.executable, "-c", SERVE), OutputHas("ready")),
    "parent": ProcessSpec("parent", "it has a child", (sys.executable, "-c", PARENT), OutputHas("ready")),
    "stubborn": ProcessSpec(
        "stubborn", "it stays", (sys.executable, "-c", STUBBORN), OutputHas("ready"), stop_within_s=0.2
    ),
    "refuses": ProcessSpec(
        "refuses", "", (sys.executable, "-c", "exit('stateloop refuses: install it')"), OutputHas("ready")
    ),
    "dies": ProcessSpec("dies", "it dies", (sys.executable, "-c", "exit('I cannot')"), Runs(), restart=QUICK),
}


def main() -> int:
    """Launch the named parts."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    parts = [PARTS[name] for name in sys.argv[2:]]
    try:
        launch(parts, Folders(Path(sys.argv[1])), Console(soft_wrap=True), stopping, fresh=False, browse=lambda _: None)
    except LaunchError as error:
        sys.stdout.write(f"stateloop: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
