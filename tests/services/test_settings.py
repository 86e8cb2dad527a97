"""Every command refuses a misspelt variable, before it does anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
COMMANDS = [
    ["spark_app"],
    ["services.tools.broker"],
    ["services.tools.cli", "jars"],
    ["services.tools.cli", "job"],
    ["services.tools.cli", "live"],
    ["services.tools.cli", "redrive", "list"],
    ["services.tools.cli", "states"],
    ["services.tools.cli", "up", "--headless"],
    ["services.tools.cli", "worker"],
    ["services.derive"],
    ["services.enrichment"],
    ["services.query"],
    ["services.sink"],
    ["services.tools.topics"],
    ["examples.flights.reference"],
    ["examples.flights.replay"],
]


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_a_misspelt_variable_is_refused_with_the_right_name(command: list[str]) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}
    environment = clean | {
        "STATELOOP_APPLICATION": "examples.flights.application:app",
        "STATELOOP_KAFKA": "127.0.0.1:1",
        "STATELOOP_PARTITONS": "3",
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode not in (0, None)
    output = f"{done.stdout}{done.stderr}"
    assert "STATELOOP_PARTITONS: no part of Stateloop reads it: write STATELOOP_PARTITIONS" in " ".join(output.split())
    assert "Traceback" not in output
