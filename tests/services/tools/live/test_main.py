from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[4]


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.tools.cli", "live"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}
    return subprocess.run(command, cwd=CHECKOUT, env=clean | environment, capture_output=True, text=True, check=False)


def test_an_invalid_setting_is_one_line() -> None:
    done = run(STATELOOP_LINE_EVERY="nonsense")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "stateloop live: STATELOOP_LINE_EVERY: " in line
