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


def test_seed_83100023() -> None:
    # A watch of all windows began with as many windows of ten keys as there were, lost them, and began again for ever.
    written = [Written(5.0 + n / 2, f"k{n % 4}", "window" if n % 3 else "version") for n in range(32)]
    down = Fault(4.0, "crash", "a", 20.0)
    script = Script(1, (down, *written), "visits", instances=1, replicas=1)
    assert not problems(script, run(script))
