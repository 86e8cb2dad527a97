"""Scripts of seeds for instances of the query service: fixed ones, and some that are new in each run."""

from __future__ import annotations

import hashlib
import secrets

import pytest

from tests.simulation.instances.generate import script
from tests.simulation.instances.world import run
from tests.simulation.seeds import require_promises, require_repeatable
from tests.simulation.verdict import instances_verdict as verdict

FIXED = range(4)
FRESH = 2
FIRST_FRESH = secrets.randbelow(1 << 32)


def test_no_reader_goes_back_in_fixed_seeds() -> None:
    for seed in FIXED:
        require_promises(script(seed), verdict)


def test_no_reader_goes_back_in_fresh_seeds() -> None:
    for seed in range(FIRST_FRESH, FIRST_FRESH + FRESH):
        require_promises(script(seed), verdict)


@pytest.mark.full
def test_no_reader_goes_back_in_many_fresh_seeds() -> None:
    for seed in range(FIRST_FRESH + FRESH, FIRST_FRESH + FRESH + 500):
        require_promises(script(seed), verdict)


@pytest.mark.full
def test_a_seed_gives_the_same_run_in_every_process() -> None:
    require_repeatable("tests.simulation.instances.test_seeds", (0, 1, 2))


def digest(seed: int) -> str:
    """Return a digest of all answers of a run."""
    return hashlib.blake2b(repr(run(script(seed))).encode(), digest_size=8).hexdigest()
