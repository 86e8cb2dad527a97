"""The scripts of seeds that once failed, each with its cause."""

from __future__ import annotations

import json

from tests.simulation.ledgers import problems
from tests.simulation.script import Compact, Fault, Forged, Redrive, Row, Savepoint, Script, Sent
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


def test_seed_900961() -> None:
    # A rebuild of a job that had been behind left out windows that it had not published to the end.
    script = Script(
        900961,
        (
            Fault(at=464.3344133849843, kind="away", part="broker", lasts=1000.0),
            Sent(at=464.96078353487826, device="d0", event="e9", ts=409.44690496411533, plate="p5", load=-5),
            Fault(at=1078.1607457584307, kind="rebuild", part="job", lasts=101.19147471646306),
        ),
        application="visits",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_1000435() -> None:
    # A member that woke up committed as the one that it became afterwards, and another owner's commit went back.
    script = Script(
        1000435,
        (
            Sent(
                at=765.2004295323852,
                device="d0",
                event="e1",
                first_seen=535.2193395515732,
                ts=721.5228901318435,
                plate="p0",
                load=98,
            ),
            Fault(at=765.6767974503938, kind="freeze", part="worker-0", lasts=17.092696758888394),
        ),
        application="short",
        partitions=1,
        workers=3,
    )
    assert not problems(script, run(script))


def test_seed_600703() -> None:
    # A worker whose clock was ahead took the windows for ended, and kept an answer to former inputs.
    script = Script(
        600703,
        (
            Fault(at=1986.1858941625583, kind="clock", part="worker-0", lasts=7.995924544428659, amount=3600.0),
            Sent(
                at=1986.266714276831,
                device="d0",
                event="e2",
                first_seen=1064.293746692717,
                ts=1952.5512391478187,
                plate="p1",
                load=54,
            ),
        ),
        application="visits",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_700107() -> None:
    # A worker whose clock was ahead for a second requested nothing for a live window, then or later.
    script = Script(
        700107,
        (
            Fault(at=985.9871763564479, kind="clock", part="worker-0", lasts=0.9556044966668125, amount=3600.0),
            Sent(
                at=986.1520949385676,
                device="d2",
                event="e13",
                first_seen=199.9979453679661,
                ts=905.3096659464857,
                plate="p0",
            ),
        ),
        application="visits",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_700813() -> None:
    # The same, while the clock was ahead for longer.
    script = Script(
        700813,
        (
            Fault(at=1624.8239245164712, kind="clock", part="worker-0", lasts=106.09571550936175, amount=3600.0),
            Sent(at=1625.2225995280583, device="d1", event="e0", ts=1625.2225995280583, load=92),
        ),
        application="visits",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_1107() -> None:
    # A derive worker that took a partition did not know which windows were expired, and opened their alerts again.
    script = Script(
        1107,
        (
            Row(at=0.5, name="r2", value='{"keys":"*","high":1,"low":0,"hold":2}'),
            Sent(at=151.87897113526935, device="d2", event="e13", ts=76.21882529970301, plate="p1", load=95),
            Fault(at=1400.0, kind="crash", part="derive-0", lasts=1000.0),
        ),
        application="short",
        partitions=4,
        derivers=2,
    )
    assert not problems(script, run(script))


def test_seed_3000218() -> None:
    # A row that was rejected while a worker wrote for other reasons counted as reported, and had no dead letter.
    script = Script(
        3000218,
        (Row(at=0.5, name="r0", value='{"high": 1, "low": 0, "hold": -1}'),),
        derivers=1,
    )
    assert not problems(script, run(script))


def test_seed_3000101() -> None:
    # A worker that looked for an earlier dead letter of a row ended when the broker was away for ten seconds.
    script = Script(
        3000101,
        (
            Row(at=1955.9391294902473, name="r0", value='{"high": 1, "low": 0, "hold": -1}'),
            Fault(at=1957.174540920535, kind="away", part="broker", lasts=32.168852782243825),
        ),
        partitions=1,
        derivers=2,
    )
    assert not problems(script, run(script))


def test_seed_120() -> None:
    # A job whose clock had been set back an hour recorded no progress for an hour.
    script = Script(
        120,
        (Fault(at=1803.4410458322, kind="clock", part="job", lasts=30.771993990508705, amount=3600.0),),
        application="visits",
        partitions=1,
        batch_s=30.0,
    )
    assert not problems(script, run(script))


def test_seed_40000989() -> None:
    # After a rebuild, an alert opened by the progress that was recorded before it.
    script = Script(
        40000989,
        (
            Row(at=0.5, name="r1", value='{"keys":"*","high":50,"low":25,"hold":2}'),
            Forged(at=1699.671222379656, topic="feedback", key=None, value=b"[]"),
            Sent(at=1871.58315, device="d0", event="e23", first_seen=349.554, ts=1758.5356591070088, load=85),
            Sent(at=1872.235992232683, device="d0", event="e17", ts=1843.1643097783701),
            Sent(at=1873.5835746411497, device="d0", event="e9", ts=1873.5835746411497, plate="p1"),
            Sent(at=1873.99277, device="d0", event="e5", first_seen=349.554, ts=1856.98735, plate="p0", load=28),
            Fault(at=2009.5404330895763, kind="cut", part="job", lasts=114.83303413567205),
            Fault(at=2018.9127037654987, kind="rebuild", part="job", lasts=0.8206294327393993),
        ),
        application="visits",
        partitions=1,
        derivers=1,
    )
    assert not problems(script, run(script))


def test_seed_56() -> None:
    # A growth moved a group that has no workers to the end of the copies, and the next growth waited for its workers.
    growths = (Fault(at, "growth", "job", 60.0, count) for at, count in ((100.0, 3), (400.0, 5)))
    script = Script(56, (Sent(10.0, "d0", "e0", ts=10.0, load=1), *growths), partitions=1)
    assert not problems(script, run(script))


def test_seed_17() -> None:
    # A dead letter of a row was looked up in the partition that its key has since partitions were added.
    script = Script(17, (Row(0.5, "r0", "[]"), Fault(100.0, "growth", "job", 60.0, 5)), partitions=1, derivers=1)
    assert not problems(script, run(script))


def test_seed_163() -> None:
    # After partitions were added, a derive worker did not know which windows were over, and opened their alerts again.
    script = Script(
        163,
        (
            Sent(at=291.0425002918174, device="d0", event="e1", ts=261.5532615679317, plate="p4", load=-3),
            Row(at=292.5137431388224, name="r2", value='{"keys":"d*","high":20,"low":0,"hold":0}'),
            Fault(at=1411.3233676221898, kind="growth", part="job", lasts=60.0, amount=5),
        ),
        application="visits",
        partitions=1,
        derivers=1,
        batch_s=300.0,
    )
    assert not problems(script, run(script))


def test_seed_72100216() -> None:
    # Compaction removed the snapshot of a deferred request, whose copy then counted as planned: the request was lost.
    first_seen = 197.0767866411341
    script = Script(
        72100216,
        (
            Fault(at=206.0767866411341, kind="hang", part="registry", lasts=60.0),
            Sent(211.0757122423694, "d3", "w13", first_seen, 211.0757122423694, "p2", 17),
            Sent(213.41862123733358, "d2", "w1", first_seen, 213.41862123733358, "p5", 88),
            Sent(213.8144869262932, "d0", "w5", first_seen, 213.8144869262932, "p5", 64),
            Fault(at=252.23769042757215, kind="crash", part="job", lasts=0.6274643283055463),
            Compact(at=258.73108717249374, topics="snapshots"),
        ),
        application="short",
        batch_s=300.0,
        unfinished=1,
        in_flight=1,
    )
    assert not problems(script, run(script))


def test_seed_99000265() -> None:
    # A growth took a group whose worker was killed before its first commit for one without workers: alerts came twice.
    first_seen = 329.42195411237844
    script = Script(
        99000265,
        (
            Row(at=379.7657764472572, name="r0", value='{"keys": "*", "high": 20, "low": 20, "hold": 0}'),
            Sent(384.7657764472572, "d0", "s0", first_seen, 384.7657764472572, "p2", 44),
            Sent(384.78786536740716, "d0", "f7", first_seen, 384.78786536740716, "p2", 58),
            Fault(at=384.8778105448172, kind="freeze", part="derive-1", lasts=19.33912308350627, amount=3.0),
            Fault(at=386.1301572483397, kind="crash", part="derive-0", lasts=22.0),
            Fault(at=389.82181432735746, kind="growth", part="job", lasts=60.0, amount=5),
        ),
        application="visits",
        partitions=3,
        derivers=2,
    )
    assert not problems(script, run(script))


def test_seed_101001531() -> None:
    # A redrive did not replace the failure of a worker whose clock was ahead: it was later by that clock.
    script = Script(
        101001531,
        (
            Fault(at=1119.7974549349915, kind="clock", part="worker-0", lasts=1000.0, amount=3600.0),
            Sent(1602.1273750998228, "d0", "e0", 640.412941392718, 1602.1273750998228, "p0", -1),
            Sent(2063.057330398603, "d0", "e7", 640.412941392718, 2063.057330398603, "p0", 46),
            Fault(at=2063.6025625348943, kind="down", part="registry", lasts=135.48996252213564),
            Redrive(at=2303.002717838375),
        ),
        application="visits",
        partitions=1,
        slowest_s=1.5,
    )
    assert not problems(script, run(script))


def test_seed_110002825() -> None:
    # A sink that woke up in a write moved the position of its store back, and the other sink read a partition again.
    first_seen = 1210.8558514648778
    script = Script(
        110002825,
        (
            Fault(at=1246.4004626655947, kind="suspended", part="sink-1", lasts=31.780599887209526, amount=4),
            Sent(1249.443708509744, "d0", "s19", first_seen, 1249.443708509744, "p2", 13),
            Sent(1249.543708509744, "d0", "s20", first_seen, 1249.543708509744, "p2", 96),
            Sent(1249.743708509744, "d0", "s22", first_seen, 1249.743708509744, "p5", 38),
        ),
        application="short",
        partitions=1,
        sinks=2,
        refused=3,
    )
    assert not problems(script, run(script))


def test_seed_210000350() -> None:
    # A growth that woke up asked to leave the workers stopped, although the command that was run again had finished.
    script = Script(
        210000350,
        (
            Fault(at=1705.9225968276808, kind="growth", part="job", lasts=60.0, amount=5),
            Fault(at=1719.4437744089848, kind="freeze", part="growth", lasts=117.85771290647504, amount=2.0),
            Fault(at=1775.806821926149, kind="again", part="job"),
            Sent(1890.720650033606, "d1", "e4", 911.5974315232778, 1890.720650033606, "p0"),
        ),
        application="batched",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_77000232() -> None:
    # No defect: a run was judged while the job waited for two acknowledgements, for two minutes each.
    at = 1637.34567297006
    script = Script(
        77000232,
        (
            Fault(at=1634.1090941454481, kind="unacknowledged", part="job", amount=2),
            Sent(at=at, device="d0", event="u0", first_seen=at - 1.0, ts=at, plate="p1", load=60),
            Sent(at=1839.1125902381475, device="d2", event="e1", first_seen=126.842, ts=1632.339),
        ),
        application="batched",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_210002388() -> None:
    # No defect: a run was judged before the job, which had no leader first, had waited for two acknowledgements.
    at = 963.7777237121178
    script = Script(
        210002388,
        (
            Fault(at=963.0540554035829, kind="unacknowledged", part="job", amount=2),
            Fault(at=963.5693806267979, kind="leaderless", part="job", lasts=257.4612016829749),
            Sent(at=at, device="d0", event="e4", ts=at, plate="p2", load=100),
            Sent(at=1355.252703391821, device="d0", event="e20", ts=1272.8821322169792, plate="p1"),
        ),
        application="batched",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_1073() -> None:
    # An answer of a worker whose clock was a year ahead was not requested again when it was stale.
    at = 1483.3404829258732
    script = Script(
        1073,
        (
            Fault(at=1482.1711802110387, kind="clock", part="worker-0", lasts=60.0, amount=31536000.0),
            Sent(at, "d1", "e0", first_seen=at, ts=at, plate="p1", load=97),
            Sent(1669.058252242738, "d1", "e3", first_seen=at, ts=1669.058252242738, load=72),
        ),
        application="refreshed",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_20342() -> None:
    # A redrive of an enrichment with `at_most_every` requested nothing: its mark counted as the last request.
    script = Script(
        20342,
        (
            Fault(at=489.6589521216417, kind="down", part="prices", lasts=150.0),
            Sent(491.0434400406454, "d2", "w7", 480.6589521216417, 491.0434400406454, plate="p2", load=94),
            Redrive(at=768.5735753880776),
        ),
        application="refreshed",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_440001199() -> None:
    # After a restore, a restarted derive worker opened the alert of a window that was over again.
    script = Script(
        440001199,
        (
            Row(at=0.5, name="r2", value='{"keys":"d[12]","high":1,"low":1,"hold":0}'),
            Sent(255.28281891648274, "d2", "vd2-1", 252.36712939030429, 255.28281891648274, plate="p1", load=11),
            Savepoint(at=312.0043256946493),
            Fault(at=1656.5016052300755, kind="crash", part="derive-0", lasts=167.09801674432762),
            Fault(at=1663.5165962813717, kind="restore", part="job", lasts=53.82751639454661),
        ),
        application="refreshed",
        partitions=1,
        derivers=1,
    )
    assert not problems(script, run(script))


def test_seed_440030276() -> None:
    # A forged answer with a time ahead stayed: the true one was of the same version, and its merge seen before its end.
    forged = {
        "device_id": "d0",
        "first_seen": "2026-01-01T00:00:00+00:00",
        "enrichment": "owner",
        "epoch": 1767225600000,
        "version": 1,
        "status": "result",
        "ts": "2026-01-01T01:05:35.301242+00:00",
        "fingerprint": "forged",
        "result": {"owner": {"name": "nobody's"}},
    }
    script = Script(
        440030276,
        (
            Fault(at=299.6892586912847, kind="cut", part="worker-0", lasts=55.97924963950873),
            Sent(at=300.13476673092896, device="d2", event="e12", ts=222.25659595666477, plate="p1", load=92),
            Sent(at=300.55238588328467, device="d0", event="e8-ahead", ts=345.55238588328467, plate="p4"),
            Sent(at=300.6633533640379, device="d0", event="e10", ts=300.6633533640379, plate="p3"),
            Sent(at=301.4828689551686, device="d0", event="e7", ts=301.4828689551686, load=42),
            Sent(at=301.5291963990853, device="d0", event="e5", ts=301.5291963990853, plate="p5"),
            Sent(at=301.5701810432335, device="d1", event="e2", ts=231.59606495426723, plate="p2", load=72),
            Forged(at=335.30124192875724, topic="feedback", key=b"d0", value=json.dumps(forged).encode()),
        ),
        application="visits",
        partitions=1,
    )
    assert not problems(script, run(script))


def test_seed_440100824() -> None:
    # A sink that was killed before its first commit of a partition moved the position of the store back.
    script = Script(
        440100824,
        (
            Sent(16.66399186294951, "d4", "e0-ahead", ts=61.66399186294951, plate="p0", load=83),
            Sent(16.66399186294951, "d4", "e0", ts=16.66399186294951, plate="p0", load=83),
            Fault(at=522.528697588317, kind="interrupted", part="sink-0", lasts=17.749751527382763, amount=2),
            Sent(523.348008148224, "d3", "e8", ts=510.01249924561415, plate="p0", load=83),
            Sent(523.4212044391933, "d4", "e3", ts=523.4212044391933, load=55),
        ),
        application="refreshed",
        partitions=4,
        sinks=1,
        sink_batch=2,
        refused=3,
    )
    assert not problems(script, run(script))
