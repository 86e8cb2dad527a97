"""How long no instance answers for a key, in virtual time: the bounds of docs/how-to/run-query-instances.md."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import pytest

from tests.simulation.instances import reader
from tests.simulation.instances.script import Fault, Script, Written
from tests.simulation.instances.world import run

LEASE_S, SESSION_S = 3.0, 6.0
TAKEN_OVER_S = 1.25 * LEASE_S + 1.0
MOMENTS_S = 0.5
FORWARDED_S = 1.0
"""The timeout of a forwarded request."""
START_S = 2.0
PAUSE_S = 0.2
SLACK_S = 1.5 * PAUSE_S
"""The pauses of a reader, and the ways of its request and of the answer."""
KEYS = ("k0", "k3", "k8", "k14")
"""Of different partitions."""
BROKEN_AT, LONG_S, AWAY_S = 20.0, 16.0, 8.0
WRITTEN = tuple(Written(4.0 + n / 4, KEYS[n % len(KEYS)]) for n in range(12))


def killed(lasts: float = LONG_S) -> Fault:
    return Fault(BROKEN_AT, "crash", "a", lasts)


def away() -> Fault:
    return Fault(BROKEN_AT, "away", "broker", AWAY_S)


@pytest.mark.parametrize(
    ("faults", "instances", "replicas", "most_s"),
    [
        pytest.param([Fault(BROKEN_AT, "stop", "a", LONG_S)], 3, 2, MOMENTS_S, id="stopped, and added later"),
        pytest.param([killed()], 3, 2, TAKEN_OVER_S, id="killed"),
        pytest.param([Fault(BROKEN_AT, "freeze", "a", LONG_S)], 3, 2, TAKEN_OVER_S + FORWARDED_S, id="frozen"),
        pytest.param([killed()], 2, 1, SESSION_S + 1.0, id="killed, no replicas"),
        pytest.param([killed(0.3)], 3, 2, START_S, id="restarted"),
        pytest.param(
            [Fault(10.0, "crash", "b", 60.0), killed(0.3)],
            2,
            2,
            START_S + TAKEN_OVER_S,
            id="restarted, no replica left",
        ),
        pytest.param([away()], 1, 2, MOMENTS_S, id="no broker, one instance"),
        pytest.param([away()], 2, 2, AWAY_S - LEASE_S + 5.0, id="no broker"),
    ],
)
def test_an_interruption_is_as_short_as_documented(
    faults: list[Fault], instances: int, replicas: int, most_s: float
) -> None:
    script = Script(0, (*WRITTEN, *faults), partitions=4, instances=instances, replicas=replicas)
    assert longest(script) < most_s + SLACK_S


def longest(script: Script) -> float:
    """Return the longest time without an answer for a key, in seconds, from shortly before the fault on."""
    with patch.object(reader, "PAUSES_S", (PAUSE_S,)):
        answers = run(script).answers
    times = {key: [BROKEN_AT - 1.0] for key in KEYS}
    for answer in answers:
        if BROKEN_AT - 1.0 < answer.at < script.quiet_at:
            times[answer.key].append(answer.at)
    return max(after - before for each in times.values() for before, after in pairwise([*each, script.quiet_at]))
