"""Readings, changes of rules, restarts of the job, and kills of the derive workers and the broker."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from examples.weather.readings import readings
from tests.e2e.alerts import STATIC, WORKERS, AlertLoop
from tests.examples.weather.oracle import rule_changes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.kills_broker]

DURING_READINGS = ("worker", "job", "broker and worker")
AFTER_A_CHANGE = ("worker and job",)


def kill(alerts: AlertLoop, what: str) -> None:
    """Kill these as kill -9 does, but for the job, and start them again."""
    worker = WORKERS - 1 if what == "worker" else STATIC
    if "broker" in what:
        alerts.broker.kill()
    if "worker" in what:
        alerts.kill_worker(worker)
    if "job" in what:
        alerts.job.stop()
        alerts.job.start()
    if "broker" in what:
        alerts.broker.start()
    if "worker" in what:  # one that finds no broker ends
        alerts.start_worker(worker)


@pytest.mark.parametrize(
    ("seed", "parts", "count", "least"),
    [pytest.param(2171, 12, 14, 100, id="month"), pytest.param(2013, 1, 200, 1000, id="year", marks=pytest.mark.full)],
)
def test_the_alerts_of_changing_rules(  # noqa: PLR0913, PLR0917  # fixtures
    spark: SparkSession,
    broker: EmbeddedBroker,
    topics_prefix: str,
    tmp_path: Path,
    seed: int,
    parts: int,
    count: int,
    least: int,
) -> None:
    drawn, rows = random.Random(seed), list(readings())
    rows = rows[: len(rows) // parts]
    changes = rule_changes(count, len(rows), seed)
    faults = [*DURING_READINGS, *(f"{what}, after a change" for what in AFTER_A_CHANGE)]
    fault_at = dict(zip(drawn.sample(range(count), len(faults)), faults, strict=True))
    alerts = AlertLoop(spark, broker, topics_prefix, tmp_path)
    try:
        alerts.start(rows[0].ts)
        alerts.send(rows[: changes[0].before])
        for number, (begin, end) in enumerate(pairwise([*(change.before for change in changes), len(rows)])):
            alerts.settle()
            alerts.change(changes[number])
            fault = fault_at.get(number, "")
            if "after" in fault:
                kill(alerts, fault)
            alerts.settle()
            some = rows[begin:end]
            middle = drawn.randrange(len(some) + 1)
            alerts.send(some[:middle])
            if fault and "after" not in fault:
                kill(alerts, fault)
            alerts.send(some[middle:])
        alerts.settle()
    finally:
        alerts.stop()
    assert len(alerts.oracle.opened) > least
    assert {why for _, why in alerts.oracle.closed} == {"condition", "rule_changed", "rule_removed"}
