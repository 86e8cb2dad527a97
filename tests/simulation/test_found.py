"""The scripts of seeds that once failed, each with its cause."""

from __future__ import annotations

from tests.simulation.ledgers import problems
from tests.simulation.script import Fault, Script, Sent
from tests.simulation.world import run


def test_seed_600063() -> None:
    # A commit that had waited for the broker had the generation of a later membership, and went back.
    script = Script(
        600063,
        (
            Sent(at=1900.9748158320956, device="d1", event="e9", ts=1900.9748158320956, plate="p0"),
            Sent(at=1901.0226231942804, device="d2", event="e3", ts=1901.0226231942804, plate="p0"),
            Fault(at=1901.3935291796015, kind="cut", part="worker-0", lasts=299.839108950758),
        ),
        application="visits",
        partitions=1,
        workers=2,
    )
    assert not problems(script, run(script))
