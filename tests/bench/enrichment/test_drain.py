"""Measures a worker that is not ours, so that it is the harness that is tested."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.enrichment import drain
from bench.enrichment.behaviour import Behaviour
from bench.enrichment.drain import WorkerDrain
from bench.enrichment.measures import Calls
from bench.harness.errors import NotCommittedError
from bench.harness.jobs import Job
from bench.harness.plan import Plan, Site

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

CALLS = Calls("calls", 200, Behaviour(latency_s=0.01))
PLAN = Plan((CALLS,), runs=1, settle_s=0.5)
SCRIPT = Path(__file__).with_name("a_worker.py")


def ignore(what: str, done: float) -> None:
    assert what
    assert done >= 0


def worker(spoil: str) -> Job:
    environment = {"SPOIL": spoil, "GROUP": "{group}", "API": "{api}"}
    return Job("small", ("taskset", "-c", "{core}", sys.executable, str(SCRIPT)), environment)


@pytest.fixture
def site(broker: EmbeddedBroker, tmp_path: Path) -> Site:
    return Site(broker.bootstrap, tmp_path, tmp_path, (broker.pid,))


def test_an_honest_worker_is_measured(site: Site) -> None:
    result = WorkerDrain(CALLS, PLAN, site).measure(worker("nothing"), 1, ignore)
    assert result.right, result
    assert result.figures["repeated"] == 0
    assert 0 < result.figures["calls_per_s"] < 100
    assert result.figures["calls_per_cpu_s"] > result.figures["calls_per_s"]
    assert result.figures["rss_mb"] > 1


def test_snapshots_without_calls_are_counted_by_commits(site: Site) -> None:
    result = WorkerDrain(replace(CALLS, events=1_000, answered=True), PLAN, site).measure(worker("nothing"), 2, ignore)
    assert result.right, result
    assert result.figures["records_per_s"] > 0


@pytest.mark.parametrize(("spoil", "what"), [("repeats", "duplicates"), ("lies", "wrong")])
def test_a_worker_that_is_wrong_once_fails_its_run(site: Site, spoil: str, what: str) -> None:
    result = WorkerDrain(CALLS, PLAN, site).measure(worker(spoil), 3, ignore)
    assert not result.right
    assert result.report is not None
    assert getattr(result.report, what) == 1
    assert result.figures["repeated"] == (1 if spoil == "repeats" else 0)


def test_so_does_one_that_does_not_commit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "COMMIT_S", 0.5)
    with pytest.raises(NotCommittedError, match="small committed 0 of 200 snapshots"):
        WorkerDrain(CALLS, PLAN, site).measure(worker("keeps"), 4, ignore)


def test_a_killed_worker_may_repeat_calls_in_flight_or_uncommitted(site: Site) -> None:
    killed = replace(CALLS, fault="kill")
    result = WorkerDrain(killed, PLAN, site).measure(worker("nothing"), 5, ignore)
    assert result.right, result
    assert result.figures["beyond"] == 0
    assert result.figures["repeated"] <= 10
