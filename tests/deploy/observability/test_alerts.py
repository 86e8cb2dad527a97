"""Each alert rule, evaluated by promtool on series that were recorded from the exporters of the parts."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from contracts.metrics import derive, sink, worker
from services.query.cluster.routing import PartitionStatus, Role
from tests.deploy.observability.generated import RULES, rules
from tests.deploy.observability.stack import APPLICATION, STATE, Stack
from tests.deploy.observability.test_rules import NAME
from tests.spark_app.run.test_metrics import operator, source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

WELL = 40
"""The minutes in which all is well, before a scenario begins."""
FIRING = 'group by (alertname) (ALERTS{alertstate="firing"})'
BACKLOG, FEW = 100_000, 10

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


class Scenario(NamedTuple):
    """What happens in each minute `since` the beginning. The alerts fire after `fires` minutes, not after `quiet`."""

    alerts: tuple[str, ...]
    quiet: int
    fires: int
    happens: Callable[[Stack, int], object]


def rejecting_job(stack: Stack, _: int) -> None:
    stack.progress = {"stateOperators": [operator("dedupe", 1000, late=7)]}


def refusing_job(stack: Stack, _: int) -> None:
    stack.progress = {"observedMetrics": {"sink": {"dead_letters": 7}}}


def slow_job(stack: Stack, _: int) -> None:
    stack.progress = {"sources": [source("events", 1125, 590, BACKLOG)]}


def stuck_watermark(stack: Stack, _: int) -> None:
    stack.progress = {"eventTime": {"watermark": datetime.fromtimestamp(60 * WELL, UTC).isoformat()}}


def hanging_job(stack: Stack, _: int) -> None:
    stack.commits = False


def catching_up(stack: Stack, since: int) -> None:
    hanging_job(stack, since)
    stack.query.catching_up(BACKLOG)


def failing_job(stack: Stack, since: int) -> None:
    hanging_job(stack, since)
    stack.query.failed()
    stack.query.starting()


def given_up(stack: Stack, since: int) -> None:
    hanging_job(stack, since)
    stack.query.gave_up("the disk is full")


def restarts(stack: Stack, since: int) -> None:
    stack.restarted_s = 60 * (since // 5) * 5


def full_disk(stack: Stack, _: int) -> None:
    stack.disk.free = 1_900_000_000


def full_volume(stack: Stack, _: int) -> None:
    stack.volume_free = 0.09


def open_breaker(stack: Stack, since: int) -> None:
    """It is half-open while it probes the API."""
    stack.worker.set(worker.BREAKER, 2 - since % 2, "reference")


def refused_delivery(stack: Stack, since: int) -> None:
    if since == 1:
        stack.webhook.add(worker.DEAD_LETTERS, "delivery_failed")


SCENARIOS = {
    "a part that does not respond": Scenario(("StateloopPartDown",), 1, 4, lambda stack, _: stack.down.add("derive")),
    "a part without containers": Scenario(("StateloopPartDown",), 1, 4, lambda stack, _: stack.gone.add("derive")),
    "one of two workers": Scenario(("StateloopProcessDown",), 4, 7, lambda stack, _: stack.down.add("enrichment-2")),
    "restarts": Scenario(("StateloopRestarts",), 15, 17, restarts),
    "the disk of a store": Scenario(("StateloopDiskNearlyFull",), 4, 7, full_disk),
    "a volume in Kubernetes": Scenario(("StateloopDiskNearlyFull",), 4, 7, full_volume),
    "a job that hangs": Scenario(("StateloopJobNotCommitting",), 17, 19, hanging_job),
    "a query that fails": Scenario(("StateloopJobFailing",), 2, 5, failing_job),
    "an application that gave up": Scenario(("StateloopJobFailing",), 1, 3, given_up),
    "a long backlog": Scenario(("StateloopJobCatchingUp",), 30, 33, catching_up),
    "a slow job": Scenario(("StateloopJobBehind",), 14, 17, slow_job),
    "a watermark that stands still": Scenario(("StateloopWatermarkStuck",), 34, 37, stuck_watermark),
    "slow workers": Scenario(
        ("StateloopWorkersBehind",), 10, 13, lambda stack, _: stack.worker.set(worker.LAG, BACKLOG)
    ),
    "a slow webhook": Scenario(
        ("StateloopWorkersBehind",), 10, 13, lambda stack, _: stack.webhook.set(worker.LAG, BACKLOG)
    ),
    "an open breaker": Scenario(("StateloopApiUnavailable",), 2, 5, open_breaker),
    "late records": Scenario(("StateloopRecordsRejected",), 9, 13, rejecting_job),
    "malformed records": Scenario(("StateloopRecordsRejected",), 9, 13, refusing_job),
    "failed enrichments": Scenario(
        ("StateloopRecordsRejected",),
        5,
        9,
        lambda stack, _: stack.worker.add(worker.DEAD_LETTERS, "enrichment_failed", by=FEW),
    ),
    "derived states that fail": Scenario(
        ("StateloopRecordsRejected",), 4, 9, lambda stack, _: stack.derive.add(derive.FAILED, APPLICATION, by=FEW)
    ),
    "rows that cannot be written": Scenario(
        ("StateloopRecordsRejected",), 5, 9, lambda stack, _: stack.sink.add(sink.DEAD_LETTERS, STATE, by=FEW)
    ),
    "a delivery that is refused": Scenario(("StateloopWebhookFailing",), 1, 3, refused_delivery),
    "slow derive workers": Scenario(
        ("StateloopDeriveBehind",), 10, 13, lambda stack, _: stack.derive.set(derive.LAG, BACKLOG, APPLICATION)
    ),
    "a partition that no instance has caught up with": Scenario(
        ("StateloopQueryPartitionsUnserved",),
        10,
        13,
        lambda stack, _: stack.routing.others.update({1: PartitionStatus(Role.CATCHING_UP, FEW)}),
    ),
    "a slow query service": Scenario(
        ("StateloopQueryBehind",),
        10,
        13,
        lambda stack, _: stack.routing.others.update({1: PartitionStatus(Role.OWNER, BACKLOG)}),
    ),
    "a store that is down": Scenario(
        ("StateloopSinkOutage",), 3, 6, lambda stack, since: stack.sink.set(sink.OUTAGE_SECONDS, 60 * since, STATE)
    ),
    "a slow sink": Scenario(
        ("StateloopSinkBehind",), 10, 13, lambda stack, _: stack.sink.set(sink.LAG, BACKLOG, STATE)
    ),
}


def named_metrics() -> set[str]:
    """The metrics of the expressions."""
    return {name for rule in rules() for name in NAME.findall(rule["expr"])}


def recorded(name: str, scenario: Scenario) -> dict[str, Any]:
    """A test of promtool: the scenario, and the alerts that fire before, at the beginning and later."""
    stack = Stack(named_metrics())
    for _ in range(WELL + scenario.fires + 1):
        if (since := stack.minute - WELL) > 0:
            scenario.happens(stack, since)
        stack.work()
        stack.scrape()
    expected: Mapping[int, tuple[str, ...]] = {
        WELL // 2: (),
        WELL: (),
        WELL + scenario.quiet: (),
        WELL + scenario.fires: scenario.alerts,
    }
    return {
        "name": name,
        "interval": "1m",
        "input_series": stack.recording.input_series(),
        "promql_expr_test": [
            {
                "expr": FIRING,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts],
            }
            for minute, alerts in expected.items()
        ],
    }


def test_each_alert_has_a_scenario() -> None:
    assert {alert for scenario in SCENARIOS.values() for alert in scenario.alerts} == {
        rule["alert"] for rule in rules()
    }


@needs_promtool
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_alert_fires_in_time_and_no_other_does(name: str, tmp_path: Path) -> None:
    file = tmp_path / "test.yml"
    written = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [recorded(name, SCENARIOS[name])],
    }
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)  # noqa: S607
    assert done.returncode == 0, done.stdout + done.stderr
