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


def test_seed_97000080() -> None:
    # A tombstone removed the newest window, which had left a watch; the one before it matched again, and was not sent.
    script = Script(
        97000080,
        (
            Written(at=36.857454327517075, key="k0", count=2),
            Written(at=37.802533946067, key="k3", count=5),
            Written(at=38.93342111354595, key="k14", kind="window"),
            Written(at=38.97333447338895, key="k14", count=5),
            Written(at=39.10550584496074, key="k8", kind="window", count=2),
            Written(at=39.35621955168926, key="k0", kind="removed", count=3),
            Written(at=41.16421142960411, key="k14", kind="window"),
            Written(at=43.141861923444424, key="k0", count=5),
            Written(at=43.710511115112816, key="k14"),
            Written(at=44.53681531758265, key="k14", count=4),
            Written(at=44.604943103029456, key="k14", kind="removed", count=3),
        ),
        application="visits",
    )
    assert not problems(script, run(script))


def test_seed_1000() -> None:
    # An instance that was cut from the owner continued a watch at an offset of a topic that was then created again.
    script = Script(
        1000,
        (
            Written(at=5.156745105484742, key="k0"),
            Written(at=10.268191688493312, key="k0", kind="removed", count=3),
            Written(at=23.852102230102993, key="k0", count=2),
            Written(at=23.990378477585857, key="k0", kind="again", count=2),
            Fault(at=26.18134831763549, kind="apart", part="c", lasts=1.5),
            Fault(at=26.25518995199139, kind="recreate", part="topic"),
        ),
        application="visits",
        partitions=2,
        instances=3,
    )
    assert not problems(script, run(script))


def test_seed_21062() -> None:
    # An instance whose clock was behind served an expired window after partitions were added, which empties the stores.
    script = Script(
        21062,
        (
            Fault(at=0.0, kind="clock", part="b", lasts=45.0, amount=-5.0397992634613615),
            Written(at=7.111184359207083, key="k8", kind="window", count=2),
            Written(at=10.955131388220536, key="k0", kind="window", count=5),
            Written(at=28.286161686448704, key="k3", kind="removed", count=2),
            Fault(at=34.976227951762944, kind="grow", part="topic", lasts=23.0, amount=4.0),
        ),
        application="trips",
        partitions=3,
    )
    assert not problems(script, run(script))


def test_seed_310000265() -> None:
    # An instance that woke without a lease sent a watch what it read; its next owner, behind it, sent "never seen".
    script = Script(
        310000265,
        (
            Fault(at=11.280534741192408, kind="crash", part="d", lasts=0.3),
            Fault(at=19.710895779456962, kind="crash", part="a", lasts=8.0),
            Fault(at=26.999395419268563, kind="freeze", part="b", lasts=8.0, amount=1.0),
            Written(at=34.96032543497892, key="k0", count=2),
        ),
        application="trips",
        broker_s=0.3,
        followed=True,
    )
    assert not problems(script, run(script))


def test_seed_410000248() -> None:
    # A watch that was resumed after its window had closed got earlier versions, and the one it had, as closed ones.
    script = Script(
        410000248,
        (
            Written(at=11.530787125853838, key="k3", count=5),
            Written(at=16.12874154354723, key="k8", count=3),
            Written(at=18.631623609262682, key="k0", count=3),
            Written(at=19.47570819962113, key="k14", count=5),
            Written(at=20.66303112326273, key="k8"),
            Fault(at=21.870935053583736, kind="leaderless", part="topic", lasts=14.0, amount=1.0),
            Fault(at=22.622661510811138, kind="freeze", part="a", lasts=24.0, amount=1.0),
            Written(at=22.990198691585054, key="k14", kind="window"),
            Fault(at=32.41339659456945, kind="stop", part="a", lasts=4.0),
            Written(at=32.694321537764964, key="k14", kind="again", count=2),
            Fault(at=36.151422433364715, kind="freeze", part="a", lasts=1.5, amount=1.0),
            Written(at=36.39171742086734, key="k0", count=5),
        ),
        application="shifts",
        partitions=3,
        instances=1,
        loss=0.1,
        slowest_s=3.0,
        followed=True,
    )
    assert not problems(script, run(script))


def test_seed_450030261() -> None:
    # A watch resumed after the tombstone of its newest window, and reported that the whole key was removed.
    script = Script(
        450030261,
        (
            Written(at=6.425337165278401, key="k3", count=4),
            Written(at=9.153660066009024, key="k0", count=3),
            Written(at=9.627476113802468, key="k3", count=2),
            Written(at=10.160030264720309, key="k3", kind="window", count=2),
            Fault(at=11.55385908029284, kind="rebuild", part="job"),
            Written(at=15.03665950885925, key="k3", count=5),
            Written(at=15.839437124698858, key="k0", count=2),
            Written(at=18.979878328668462, key="k0", kind="window", count=2),
            Written(at=20.113715560521545, key="k3", kind="again", count=3),
            Fault(at=20.345645869582075, kind="away", part="broker", lasts=24.0),
            Written(at=32.75028492170829, key="k3", count=5),
            Written(at=36.98250389836397, key="k3", kind="removed", count=5),
            Written(at=39.664571911669654, key="k3", kind="again", count=2),
        ),
        application="visits",
    )
    assert not problems(script, run(script))


def test_seed_450040174() -> None:
    # Two instances expired a window, and stopped: a third one, whose clock was behind, started again and served it.
    script = Script(
        450040174,
        (
            Fault(at=0.0, kind="clock", part="c", lasts=45.0, amount=-5.718273655329136),
            Written(at=17.130951451411388, key="k8", count=4),
            Written(at=20.71998031013567, key="k0", count=5),
            Written(at=33.391190556020334, key="k0", count=5),
            Written(at=34.085789360161414, key="k0", kind="again", count=4),
            Fault(at=35.4918945414234, kind="grow", part="topic", lasts=23.0, amount=7.0),
        ),
        application="trips",
        partitions=4,
        instances=3,
    )
    assert not problems(script, run(script))


def test_seed_450900020() -> None:
    # A relay was not told that its owner's topic was made anew: a new owner left out records by the former offsets.
    script = Script(
        450900020,
        (
            Written(at=5.630887772867474, key="k0", count=2),
            Written(at=8.375503738428202, key="k0"),
            Written(at=9.730476055935856, key="k0"),
            Written(at=10.853758747703461, key="k0", count=5),
            Written(at=12.345405264912573, key="k0", kind="again", count=5),
            Fault(at=12.897936542682823, kind="cut", part="c", lasts=24.0, amount=3.0),
            Written(at=14.091597599254019, key="k0", kind="removed", count=2),
            Written(at=20.5936892155618, key="k0", kind="removed", count=3),
            Written(at=21.47114113982159, key="k0", count=5),
            Written(at=22.240562641079663, key="k0", kind="again", count=2),
            Fault(at=24.38382217342053, kind="recreate", part="topic"),
            Written(at=29.351530076580342, key="k0", kind="removed", count=3),
            Written(at=29.667227104027326, key="k0", count=2),
            Written(at=29.843996413810423, key="k0"),
            Written(at=30.222672312993677, key="k0"),
            Written(at=30.930101704846617, key="k0", count=3),
            Written(at=31.16204048941945, key="k0", count=4),
            Written(at=32.11323279558974, key="k0", count=4),
            Fault(at=33.553318584749825, kind="rebuild", part="job"),
            Fault(at=33.667755515120234, kind="power", part="d", lasts=24.0),
            Written(at=33.69655671552062, key="k0", kind="again"),
            Written(at=33.781965269261526, key="k0", kind="removed", count=5),
            Written(at=34.46074756178961, key="k0", count=5),
            Fault(at=39.86834497594851, kind="power", part="b", lasts=8.0),
            Written(at=42.81936362223009, key="k0", count=5),
        ),
        application="visits",
        partitions=2,
        replicas=1,
        followed=True,
    )
    assert not problems(script, run(script))
