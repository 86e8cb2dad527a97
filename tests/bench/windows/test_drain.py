"""Measures a job of a few lines, so that it is the harness that is tested."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.harness.load import readings
from bench.harness.measure import Site
from bench.harness.results import OracleReport
from bench.windows.drain import Drained, WindowCounts, figures
from bench.windows.jobs import WINDOW_JOBS, WindowJob
from contracts import Emit
from contracts.model.suite import load_suite

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

COUNTS = WindowCounts("windows", events=3_500, devices=50, hours=3)
SCRIPT = Path(__file__).with_name("a_count.py")


def ignore(what: str) -> None:
    assert what


@pytest.fixture
def site(broker: EmbeddedBroker, tmp_path: Path) -> Site:
    return Site(broker.bootstrap, tmp_path, tmp_path, settle_s=0.5)


def job(emit: Emit, spoil: str) -> WindowJob:
    command = (sys.executable, str(SCRIPT), "{boot}", "{backlog}.", emit.value, spoil)
    return WindowJob(f"small-{emit}", command, emit=emit, key="key", start="window_start", count="count")


def test_each_of_our_jobs_counts_both_backlogs() -> None:
    for ours in WINDOW_JOBS[:2]:
        for backlog in ("long", "short"):
            (application,) = load_suite(ours.environment["STATELOOP_APPLICATION"].format(backlog=backlog)).applications
            assert application.topics.prefix == f"{backlog}."
            assert application.emit is ours.emit


def test_the_short_backlog_is_the_begin_of_the_long_one() -> None:
    short, whole = COUNTS.short_events, COUNTS.events
    assert short / whole == pytest.approx(1.5 / 3.5, rel=1e-3)
    end = 1_800_001_800.0
    times = [reading.ts for reading in readings(whole, COUNTS.devices, end, COUNTS.step_s)]
    assert times[0].endswith(":00:00.000000+00:00")
    assert times[short - 1][14:16] == "29"
    assert times[-1][14:16] == "29"


@pytest.mark.kafka
def test_jobs_that_count_are_measured(site: Site) -> None:
    meter = COUNTS.meter(site)
    for emit, published in ((Emit.EVENT, 1.0), (Emit.CLOSE, 150 / COUNTS.events)):
        measured, report = meter.measure(job(emit, "nothing"), emit.value, ignore)
        assert report.right, report
        assert measured["cpu_s"] > 0
        assert measured["counts_per_record"] == published


@pytest.mark.kafka
def test_a_count_that_is_wrong_in_the_short_backlog_fails_the_run(site: Site) -> None:
    _, report = COUNTS.meter(site).measure(job(Emit.EVENT, "short"), "wrong", ignore)
    assert not report.right
    assert report.wrong == 1


def drained(seconds: float, cpu_s: float) -> Drained:
    return Drained(seconds, cpu_s, OracleReport(events=10, snapshots=6_000))


def test_figures_are_of_the_difference_of_the_backlogs() -> None:
    counts = WindowCounts("windows", events=35_000, devices=50, hours=3)
    measured = figures(counts, drained(seconds=12.0, cpu_s=16.5), drained(seconds=14.0, cpu_s=17.5))
    assert measured == pytest.approx(
        {
            "records_per_s": 10_000,
            "us_per_record": 50,
            "cpu_s": 17.5,
            "start_cpu_s": 15.75,
            "counts_per_record": 6_000 / 35_000,
        }
    )


def test_a_long_backlog_that_took_no_longer_gives_no_figures_of_speed() -> None:
    measured = figures(COUNTS, drained(seconds=12.0, cpu_s=16.0), drained(seconds=11.0, cpu_s=15.0))
    assert measured.keys() == {"cpu_s", "counts_per_record"}
