"""A run is judged when its job has waited for all lost acknowledgements, and not much later."""

from __future__ import annotations

import pytest

from tests.simulation.ledgers import problems
from tests.simulation.quiet import QUIET_S, quiet_times
from tests.simulation.script import ENDS_S, Fault, Script, Sent
from tests.simulation.world import run

UNACKNOWLEDGED = Fault(at=1634.0, kind="unacknowledged", part="job", amount=2)
FIRST = Sent(at=1637.0, device="d0", event="e1", ts=1637.0, plate="p1", load=3)
OUTAGE_ENDS_S = 1935.0


def outage(kind: str, part: str = "job") -> Fault:
    return Fault(at=1635.0, kind=kind, part=part, lasts=OUTAGE_ENDS_S - 1635.0)


OUTAGES = (outage("away", "broker"), *map(outage, ("cut", "freeze", "suspended", "leaderless")))


@pytest.mark.parametrize("other", OUTAGES)
def test_it_is_not_judged_while_the_job_waits_after_an_outage(other: Fault) -> None:
    just_after = Sent(at=OUTAGE_ENDS_S + QUIET_S + 5.0, device="d1", event="e2", ts=2050.0)
    script = Script(1, (UNACKNOWLEDGED, other, FIRST, just_after), application="batched", partitions=1)
    assert not problems(script, run(script))


def test_it_is_not_judged_while_the_job_waits_for_the_acknowledgements_of_two_faults() -> None:
    second = Fault(at=1635.0, kind="unacknowledged", part="job", amount=2)
    steps = Sent(at=1940.0, device="d0", event="e2", ts=1940.0, plate="p2"), Sent(2003.0, "d1", "e3", ts=2003.0)
    script = Script(1, (UNACKNOWLEDGED, second, FIRST, *steps), application="batched", partitions=1)
    assert not problems(script, run(script))


@pytest.mark.parametrize("other", [outage("clock"), outage("leaderless", "worker-0"), outage("hang", "store")])
def test_what_lets_the_job_write_does_not_delay_it(other: Fault) -> None:
    after = Sent(at=OUTAGE_ENDS_S + QUIET_S + 5.0, device="d1", event="e2")
    script = Script(1, (UNACKNOWLEDGED, other, FIRST, after), application="batched")
    assert quiet_times(script)[1:] == [pytest.approx(after.at, abs=0.01), ENDS_S]
