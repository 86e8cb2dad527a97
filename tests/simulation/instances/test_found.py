"""The scripts of seeds that once failed, each with its cause."""

from __future__ import annotations

from tests.simulation.instances.ledgers import problems
from tests.simulation.instances.script import Fault, Script, Written
from tests.simulation.instances.world import run


def test_seed_41000302() -> None:
    # When a window expired, an instance that did not serve the key sent its client a removed one of its own old store.
    script = Script(
        41000302,
        (
            Fault(at=23.31176258302039, kind="crash", part="b", lasts=14.0),
            Written(at=32.41451095985285, key="k1", count=5),
            Written(at=35.63119748926778, key="k1", kind="window", count=2),
            Written(at=46.339429254565516, key="k1", kind="removed"),
        ),
        application="shifts",
        partitions=2,
        replicas=1,
    )
    assert not problems(script, run(script))
