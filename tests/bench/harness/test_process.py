from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

import pytest

from bench.harness.errors import JobExitedError, JobStalledError
from bench.harness.jobs import Job
from bench.harness.measure import Site
from bench.harness.process import RunningJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEPS = Job("sleeps", (sys.executable, "-c", "import time; time.sleep(600)"))
ENDS = Job("ends", ("true",))
SOON_S = 10.0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site("", tmp_path, tmp_path)


@pytest.fixture
def running(site: Site) -> Iterator[RunningJob]:
    with RunningJob(SLEEPS, site, "sleeps") as job:
        yield job


def test_a_count_is_followed_while_it_grows(running: RunningJob) -> None:
    counts = running.counts(itertools.count(1).__next__, "snapshots", SOON_S, look_s=0.001)
    assert list(itertools.islice(counts, 5)) == [1, 2, 3, 4, 5]


def test_a_count_that_does_not_grow_is_given_up(running: RunningJob) -> None:
    with pytest.raises(JobStalledError, match="sleeps gave no more snapshots than 3 for 0 s"):
        list(running.counts(lambda: 3, "snapshots", 0.0, look_s=0.001))


def test_so_is_a_condition_that_does_not_come(running: RunningJob) -> None:
    running.until(lambda: True, "snapshot", 0.0)
    with pytest.raises(JobStalledError, match="sleeps gave no snapshot for 0 s"):
        running.until(lambda: False, "snapshot", 0.0)


def test_a_job_that_ends_is_not_waited_for(site: Site) -> None:
    with RunningJob(ENDS, site, "ends") as job:
        with pytest.raises(JobExitedError, match="ends ended by itself"):
            job.wait(SOON_S)
        with pytest.raises(JobExitedError):
            job.until(lambda: False, "snapshot", SOON_S)
        with pytest.raises(JobExitedError):
            list(job.counts(lambda: 0, "snapshots", SOON_S))


def test_what_it_uses_and_what_it_leaves(running: RunningJob, site: Site) -> None:
    running.until(lambda: running.group.rss_mb() > 1, "memory", SOON_S)
    assert 0 < running.group.own_mb() <= running.group.rss_mb()
    assert running.cpu_s() >= 0
    running.__exit__()
    assert not running.group.pids()
    assert not list((site.folder / "run").iterdir())
