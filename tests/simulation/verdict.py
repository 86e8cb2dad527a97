"""Runs a script, and judges the run."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, TypeVar

from tests.simulation import ledgers, world
from tests.simulation.instances import ledgers as instances_ledgers
from tests.simulation.instances import world as instances_world

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S")
L = TypeVar("L")


def _judged(run: Callable[[S], L], problems: Callable[[S, L], list[str]]) -> Callable[[S], list[str]]:
    def verdict(script: S) -> list[str]:
        """Return what is wrong with the run of a script. An error that stops the run is a problem too."""
        try:
            return problems(script, run(script))
        except Exception as error:  # noqa: BLE001  # whatever it is, the script has found it
            return ["".join(traceback.format_exception_only(error)).strip()]

    return verdict


verdict = _judged(world.run, ledgers.problems)
instances_verdict = _judged(instances_world.run, instances_ledgers.problems)
