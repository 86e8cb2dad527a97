"""Measures the engines themselves, on few keys: the harness must find that their alerts are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.alerts.changes import RuleChangeTimes, temperature, threshold
from bench.alerts.engines import ALERT_JOBS
from bench.alerts.measures import RuleChanges
from bench.harness.plan import Plan, Site
from bench.peers.build import FOLDER, up_to_date

if TYPE_CHECKING:
    from pathlib import Path

    from bench.harness.jobs import Job
    from tests.services.broker.embedded import EmbeddedBroker

CHANGES = RuleChanges("rules", keys=2_000, changes=2)
PLAN = Plan((CHANGES,), runs=1, settle_s=0.5)


def ignore(what: str, done: float) -> None:
    assert what
    assert 0 <= done <= 1


def test_one_key_in_a_hundred_breaks_the_rule_and_after_each_change_a_few_more() -> None:
    broken = [{key for key in range(10_000) if temperature(key) >= threshold(change)} for change in range(3)]
    assert [len(one) for one in broken] == [100, 101, 102]
    assert broken[0] < broken[1] < broken[2]


@pytest.mark.kafka
@pytest.mark.parametrize("job", ALERT_JOBS, ids=lambda job: job.name)
def test_the_alerts_of_changed_rules_are_measured(job: Job, broker: EmbeddedBroker, tmp_path: Path) -> None:
    if job.peer and not up_to_date(FOLDER / job.peer, job.peer):
        pytest.skip("the peers are not built: python -m bench.peers.build")
    result = RuleChangeTimes(CHANGES, PLAN, Site(broker.bootstrap, tmp_path, tmp_path)).measure(job, 1, ignore)
    assert result.right, result
    assert 0 < result.figures["first_ms"] <= result.figures["last_ms"] <= result.figures["slowest_ms"]
    assert result.figures["own_mb"] > 0
