"""Scripts of seeds: those that once failed, some fixed ones, and some that are new in each run."""

from __future__ import annotations

import hashlib
import secrets

import pytest

from tests.simulation.generate import script
from tests.simulation.seeds import require_promises, require_repeatable
from tests.simulation.verdict import verdict
from tests.simulation.world import run

FIXED = range(60)
FRESH = 40
FIRST_FRESH = secrets.randbelow(1 << 32)


@pytest.mark.parametrize("first", FIXED[::20])
def test_fixed_seeds_keep_all_promises(first: int) -> None:
    for seed in range(first, first + 20):
        require_promises(script(seed), verdict)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(0, FRESH, 20))
def test_fresh_seeds_keep_all_promises(part: int) -> None:
    for seed in range(FIRST_FRESH + part, FIRST_FRESH + part + 20):
        require_promises(script(seed), verdict)


@pytest.mark.full
def test_many_fresh_seeds_keep_all_promises() -> None:
    for seed in range(FIRST_FRESH + FRESH, FIRST_FRESH + FRESH + 2000):
        require_promises(script(seed), verdict)


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_every_process() -> None:
    require_repeatable("tests.simulation.test_seeds", (0, 6, 11, 19))


def digest(seed: int) -> str:
    """Return a digest of all records and calls of a run."""
    ledgers = run(script(seed))
    return hashlib.blake2b(repr((ledgers.records, ledgers.calls)).encode(), digest_size=8).hexdigest()
