"""Applications run side by side: one that gives up does not stop the others, and the job ends when all have."""

from __future__ import annotations

import threading
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from contracts.errors import PermanentError, RetryableError
from contracts.model.suite import Suite
from spark_app.errors import CheckpointInUseError, TopicMissingError
from spark_app.run.applications import GivenUp, keep_running, run_all
from spark_app.settings import JobSettings
from tests.contracts.model.test_suite import DAYS, TRIPS

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 30


class FakeJob:
    """A job whose runs end as given; after those it runs until it is stopped. It is its own report."""

    def __init__(self, name: str, *ends: Exception) -> None:
        self.name = name
        self.report: Any = self
        self.reasons: list[str] = []
        self.is_running = threading.Event()
        self.has_given_up = threading.Event()
        self._ends = deque(ends)

    def run(self, spark: Any, stopping: threading.Event) -> None:  # noqa: ARG002
        if self._ends:
            raise self._ends.popleft()
        self.is_running.set()
        assert stopping.wait(PATIENCE_S)

    def gave_up(self, why: str) -> None:
        self.reasons.append(why)
        self.has_given_up.set()


def run(*jobs: FakeJob, retry_after: timedelta = timedelta(0), stop_after: Callable[[], object] | None = None) -> None:
    """Run these jobs, until `stop_after` returns."""
    stopping = threading.Event()

    def stop(wait: Callable[[], object]) -> None:
        wait()
        stopping.set()

    if stop_after is not None:
        threading.Thread(target=stop, args=(stop_after,)).start()
    run_all(jobs, None, stopping, retry_after=retry_after)  # type: ignore[arg-type]  # no fake needs Spark


def test_a_stop_exits_all_applications() -> None:
    jobs = FakeJob("a"), FakeJob("b")
    run(*jobs, stop_after=lambda: [job.is_running.wait(PATIENCE_S) for job in jobs])
    assert [job.reasons for job in jobs] == [[], []]


@pytest.mark.parametrize("error", [PermanentError("broken"), ValueError("broken")])
def test_the_others_go_on_when_one_gives_up(error: Exception) -> None:
    good, bad = FakeJob("good"), FakeJob("bad", error)
    stop_after = lambda: bad.has_given_up.wait(PATIENCE_S) and good.is_running.wait(PATIENCE_S)  # noqa: E731
    run(good, bad, retry_after=timedelta(hours=1), stop_after=stop_after)
    assert (good.reasons, bad.reasons) == ([], ["broken"])
    assert not bad.is_running.is_set()


@pytest.mark.parametrize("kind", [RetryableError, CheckpointInUseError, TopicMissingError, ValueError])
def test_an_application_that_gave_up_starts_again_while_another_runs(kind: type[Exception]) -> None:
    facts = ("by another job",) if kind in (CheckpointInUseError, TopicMissingError) else ()
    first, second = kind("first", *facts), kind("second", *facts)
    good, bad = FakeJob("good"), FakeJob("bad", first, second)
    run(good, bad, stop_after=lambda: bad.is_running.wait(PATIENCE_S))
    assert bad.reasons == [str(first), str(second)]


def test_the_job_exits_with_the_last_error_when_all_have_given_up() -> None:
    waits, ends = FakeJob("waits", RetryableError("may pass")), FakeJob("ends", PermanentError("does not"))
    with pytest.raises((RetryableError, PermanentError)) as last:
        run(waits, ends, retry_after=timedelta(hours=1))
    assert str(last.value) in {"may pass", "does not"}
    assert (waits.reasons, ends.reasons) == (["may pass"], ["does not"])


def test_an_application_whose_report_fails_has_given_up() -> None:
    mute, given_up = FakeJob("mute", PermanentError("broken")), GivenUp(1, threading.Event())
    mute.report = Mock(gave_up=Mock(side_effect=OSError("no report")))
    with pytest.raises(OSError, match="no report"):
        keep_running(mute, None, given_up, timedelta(0))  # type: ignore[arg-type]  # no fake needs Spark
    assert given_up.are_all()


def test_a_single_application_stops_the_job_as_soon_as_it_gives_up() -> None:
    alone = FakeJob("alone", RetryableError("may pass"))
    with pytest.raises(RetryableError, match="may pass"):
        run(alone, retry_after=timedelta(hours=1))


def test_each_application_of_a_suite_has_a_folder_for_its_checkpoint() -> None:
    settings = JobSettings(application="", checkpoint="hdfs://name/job/")
    assert settings.by_application(Suite(TRIPS)) == [(TRIPS, settings)]
    both = settings.by_application(Suite(TRIPS, DAYS))
    assert [(application.name, own.checkpoint) for application, own in both] == [
        ("trips", "hdfs://name/job/trips"),
        ("days", "hdfs://name/job/days"),
    ]
