"""Runs a script, and judges the run."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from tests.simulation.ledgers import problems
from tests.simulation.world import run

if TYPE_CHECKING:
    from tests.simulation.script import Script


def verdict(script: Script) -> list[str]:
    """Return what is wrong with the run of a script. An error that stops the run is a problem too."""
    try:
        return problems(script, run(script))
    except Exception as error:  # noqa: BLE001  # whatever it is, the script has found it
        return ["".join(traceback.format_exception_only(error)).strip()]
