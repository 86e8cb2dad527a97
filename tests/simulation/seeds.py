"""What each seed has to show: its script keeps all promises, and runs the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.simulation.instances.script import Script as InstancesScript
from tests.simulation.script import Script
from tests.simulation.shrink import as_test, shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

S = TypeVar("S", Script, InstancesScript)


def require_promises(script: S, verdict: Callable[[S], list[str]]) -> None:
    """Require that a script keeps all promises; else print the shortest one that does not, as a test."""
    if found := verdict(script):
        smallest = shrunk(script, lambda smaller: bool(verdict(smaller)), 100)
        pytest.fail(f"seed {script.seed}: {found[:3]}\n\n{as_test(smallest, found)}")


def require_repeatable(module: str, seeds: Sequence[int]) -> None:
    """Require that `digest` of a module is the same in two processes for these seeds.

    The order of sets and the addresses of objects differ between them.
    """
    code = f"from {module} import digest; print([digest(seed) for seed in {seeds}])"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
