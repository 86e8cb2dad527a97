"""A year of readings, 200 changes of rules, and kills of the job, the derive workers and the broker."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from examples.weather.readings import readings
from tests.e2e.alerts import WORKERS, AlertLoop
from tests.examples.weather.oracle import rule_changes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

CHANGES = 200
SEED = 2013
DURING_READINGS = ("worker", "job", "broker", "broker and worker")
AFTER_A_CHANGE = ("worker", "worker and job")


def kill(alerts: AlertLoop, what: str, drawn: random.Random) -> None:
    """Kill these as kill -9 does, and start them again."""
    worker = drawn.randrange(WORKERS)
    if "broker" in what:
        alerts.broker.kill()
    if "worker" in what:
        alerts.kill_worker(worker)
        alerts.start_worker(worker)
    if "job" in what:
        alerts.job.kill()
        alerts.job.start()
    if "broker" in what:
        alerts.broker.start()


def test_the_alerts_of_a_year(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> None:
    drawn, rows = random.Random(SEED), list(readings())
    changes = rule_changes(CHANGES, len(rows), SEED)
    faults = [*DURING_READINGS, *(f"{what}, after a change" for what in AFTER_A_CHANGE)]
    fault_at = dict(zip(drawn.sample(range(CHANGES), len(faults)), faults, strict=True))
    alerts = AlertLoop(broker, topics_prefix, tmp_path)
    try:
        alerts.start(rows[0].ts)
        alerts.send(rows[: changes[0].before])
        for number, (begin, end) in enumerate(pairwise([*(one.before for one in changes), len(rows)])):
            alerts.settle()
            alerts.change(changes[number])
            fault = fault_at.get(number, "")
            if "after" in fault:
                kill(alerts, fault, drawn)
            alerts.settle()
            some = rows[begin:end]
            middle = drawn.randrange(len(some) + 1)
            alerts.send(some[:middle])
            if fault and "after" not in fault:
                kill(alerts, fault, drawn)
            alerts.send(some[middle:])
        alerts.settle()
    finally:
        alerts.stop()
    assert len(alerts.oracle.opened) > 1000
    assert {why for _, why in alerts.oracle.closed} == {"condition", "rule_changed", "rule_removed"}
