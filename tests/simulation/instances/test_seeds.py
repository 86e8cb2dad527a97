"""Scripts of seeds for instances of the query service: fixed ones, and some that are new in each run."""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys

import pytest

from tests.simulation.instances.generate import script
from tests.simulation.instances.world import run
from tests.simulation.shrink import as_test, shrunk
from tests.simulation.verdict import instances_verdict as verdict

FIXED = range(4)
FRESH = 2
FIRST_FRESH = secrets.randbelow(1 << 32)


def test_no_reader_goes_back_in_fixed_seeds() -> None:
    for seed in FIXED:
        require_promises(seed)


def test_no_reader_goes_back_in_fresh_seeds() -> None:
    for seed in range(FIRST_FRESH, FIRST_FRESH + FRESH):
        require_promises(seed)


@pytest.mark.full
def test_no_reader_goes_back_in_many_fresh_seeds() -> None:
    for seed in range(FIRST_FRESH + FRESH, FIRST_FRESH + FRESH + 500):
        require_promises(seed)


@pytest.mark.full
def test_a_seed_gives_the_same_run_in_every_process() -> None:
    """The order of sets and the addresses of objects differ between these processes."""
    code = "from tests.simulation.instances.test_seeds import digest; print([digest(seed) for seed in (0, 1, 2)])"
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


def digest(seed: int) -> str:
    """Return a digest of all answers of a run."""
    return hashlib.blake2b(repr(run(script(seed))).encode(), digest_size=8).hexdigest()


def require_promises(seed: int) -> None:
    if found := verdict(script(seed)):
        smallest = shrunk(script(seed), lambda smaller: bool(verdict(smaller)), 100)
        pytest.fail(f"seed {seed}: {found[:3]}\n\n{as_test(smallest, found)}")
