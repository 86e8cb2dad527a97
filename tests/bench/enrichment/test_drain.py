"""Measures a worker that is not ours, so that it is the harness that is tested."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.enrichment import drain
from bench.enrichment.api import Behaviour
from bench.enrichment.drain import Calls, NotCommittedError, Sample, figures
from bench.harness.jobs import Job
from bench.harness.measure import Site

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

CALLS = Calls("calls", 200, Behaviour(latency_s=0.01))
SCRIPT = Path(__file__).with_name("a_worker.py")


def ignore(what: str) -> None:
    assert what


def worker(spoil: str) -> Job:
    environment = {"SPOIL": spoil, "GROUP": "{group}", "API": "{api}"}
    return Job("small", ("taskset", "-c", "{core}", sys.executable, str(SCRIPT)), environment)


@pytest.fixture
def site(broker: EmbeddedBroker, tmp_path: Path) -> Site:
    return Site(broker.bootstrap, tmp_path, tmp_path, (broker.pid,), settle_s=0.5)


@pytest.mark.kafka
def test_an_honest_worker_is_measured(site: Site) -> None:
    measured, report = CALLS.meter(site).measure(worker("nothing"), "honest", ignore)
    assert report.right, report
    assert measured["repeated"] == 0
    assert 0 < measured["calls_per_s"] < 100
    assert measured["calls_per_cpu_s"] > measured["calls_per_s"]
    assert measured["rss_mb"] > 1


@pytest.mark.kafka
def test_snapshots_without_calls_are_counted_by_commits(site: Site) -> None:
    idle = replace(CALLS, events=1_000, answered=True)
    measured, report = idle.meter(site).measure(worker("nothing"), "idle", ignore)
    assert report.right, report
    assert measured["records_per_s"] > 0


@pytest.mark.kafka
@pytest.mark.parametrize(("spoil", "what"), [("repeats", "duplicates"), ("lies", "wrong")])
def test_a_worker_that_is_wrong_once_fails_its_run(site: Site, spoil: str, what: str) -> None:
    measured, report = CALLS.meter(site).measure(worker(spoil), spoil, ignore)
    assert not report.right
    assert getattr(report, what) == 1
    assert measured["repeated"] == (1 if spoil == "repeats" else 0)


@pytest.mark.kafka
def test_so_does_one_that_does_not_commit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "COMMIT_S", 0.5)
    with pytest.raises(NotCommittedError, match="small committed 0 of 200 snapshots"):
        CALLS.meter(site).measure(worker("keeps"), "keeps", ignore)


def test_rates_are_those_of_the_steady_part() -> None:
    samples = [Sample(at, at / 2, 100 + at, done) for at, done in ((0, 0), (5, 100), (6, 500), (7, 960), (99, 1_000))]
    measured = figures(samples, 1_000, answered=False)
    assert measured == {"calls_per_s": 430, "calls_per_cpu_s": 860, "rss_mb": 199}


def test_so_are_those_of_snapshots_without_calls() -> None:
    samples = [Sample(at, at, 1.0, done) for at, done in ((1, 0), (2, 200), (4, 1_000))]
    assert figures(samples, 1_000, answered=True)["records_per_s"] == 400
