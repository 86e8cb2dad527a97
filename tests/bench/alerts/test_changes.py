"""Measures the engines themselves, on few keys: the harness must find that their alerts are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.alerts.changes import RuleChanges, temperature, threshold
from bench.alerts.jobs import ALERT_JOBS
from bench.harness.measure import Site
from bench.peers.build import FOLDER, up_to_date

if TYPE_CHECKING:
    from pathlib import Path

    from bench.alerts.jobs import AlertJob
    from tests.services.tools.broker.embedded import EmbeddedBroker

CHANGES = RuleChanges("rules", keys=2_000, changes=2)


def ignore(what: str) -> None:
    assert what


def test_one_key_in_a_hundred_breaks_the_rule_and_after_each_change_a_few_more() -> None:
    broken = [{key for key in range(10_000) if temperature(key) >= threshold(change)} for change in range(3)]
    assert [len(keys) for keys in broken] == [100, 101, 102]
    assert broken[0] < broken[1] < broken[2]


@pytest.mark.kafka
@pytest.mark.parametrize("job", ALERT_JOBS, ids=lambda job: job.name)
def test_the_alerts_of_changed_rules_are_measured(job: AlertJob, broker: EmbeddedBroker, tmp_path: Path) -> None:
    if job.peer and not up_to_date(FOLDER / job.peer, job.peer):
        pytest.skip("the peers are not built: python -m bench.peers.build")
    site = Site(broker.bootstrap, tmp_path, tmp_path)
    measured, report = CHANGES.meter(site).measure(job, f"rules-{job.name}", ignore)
    assert report.right, report
    assert 0 < measured["first_ms"] <= measured["last_ms"] <= measured["slowest_ms"]
    assert measured["own_mb"] > 0
