from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
APPLICATION = {"STATELOOP_APPLICATION": "examples.scooters.application:app"}


def refusal(**environment: str) -> str:
    command = [sys.executable, "-m", "services.live"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}
    done = subprocess.run(command, cwd=CHECKOUT, env=clean | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def test_a_missing_setting_is_one_line() -> None:
    assert "stateloop live: STATELOOP_APPLICATION: Field required" in refusal()


def test_options_that_the_client_does_not_know_are_one_line() -> None:
    line = refusal(**APPLICATION, STATELOOP_KAFKA_OPTIONS='{"nonsense": "1"}')
    assert "nonsense" in line
    assert "correct STATELOOP_KAFKA_OPTIONS" in line
