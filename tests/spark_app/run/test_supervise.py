"""A query that fails is started again, and one that keeps failing ends the driver."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException, StreamingQueryException

from spark_app.errors import (
    BrokerUnreachableError,
    ConcurrentCommitError,
    ForeignCheckpointError,
    LeaseLostError,
    QueryFailsError,
    SparkExitedError,
)
from spark_app.run.metrics import JobMetrics
from spark_app.run.report import JobReport, QueryReport
from spark_app.run.start import QueryRun
from spark_app.run.supervise import LONGEST_PAUSE_S, Failures, batches, since, supervise
from spark_app.run.wall_clock import WallClock
from tests.clock import Clock
from tests.spark_app.run.test_metrics import progress_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@dataclass
class Query:
    """A query that commits some batches and then fails, or runs until it is stopped."""

    batches: int
    fails: bool = True
    refuses: Exception | None = None
    stopped: bool = False
    catches_up: bool = False
    waits: bool = False
    recentProgress: list[Any] = field(default_factory=list)  # noqa: N815  # PySpark's name

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": not self.waits}

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802, ARG002
        if len(self.recentProgress) < self.batches:
            number = len(self.recentProgress)
            self.recentProgress.append(progress_of(batchId=number))
            return False
        if self.catches_up:
            return True
        if self.fails:
            raise StreamingQueryException("broken\nmore")
        return self.stopped

    def stop(self) -> None:
        self.stopped = True


class LeaseObservation:
    """A clock that a test moves."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Events:
    """Counts the calls of a listener, and raises `refusal` instead."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.batches, self.looks, self.idles, self.refusal = 0, 0, 0, refusal

    def after(self, progress: Any) -> None:  # noqa: ARG002
        self.batches += 1
        if self.refusal:
            raise self.refusal

    def look(self) -> None:
        self.looks += 1

    def idle(self) -> None:
        self.idles += 1


def report(lines: list[str]) -> QueryReport:
    metrics = JobMetrics().query("flights", timedelta(minutes=5), timedelta(minutes=5))
    return QueryReport(JobReport(lines.append), "flights", metrics)


def run(queries: list[Query], *, give_up: timedelta, step: float, events: Events | None = None) -> list[dict[str, Any]]:
    """Supervise these queries, one after the other; gives what was reported."""
    lines: list[str] = []
    stopping = threading.Event()
    stopping.wait = lambda timeout=None: timeout is None  # type: ignore[method-assign]  # no test sleeps
    left = iter(queries)

    def start() -> Any:
        query = next(left)
        if query.refuses is not None:
            raise query.refuses
        if not query.fails:
            stopping.set()
        return QueryRun(query, is_catch_up=query.catches_up)  # type: ignore[arg-type]  # stands in for a query

    try:
        supervise(start, report(lines), Failures(give_up, LeaseObservation(step)), stopping, events or Events())
    finally:
        reported = [json.loads(line) for line in lines]
    return reported


def test_a_failed_query_is_started_again_in_the_same_driver() -> None:
    reported = run([Query(1), Query(1), Query(1, fails=False)], give_up=timedelta(minutes=5), step=1)
    assert [line["job"] for line in reported].count("failed") == 2
    first = reported[1]
    assert abs(datetime.now(UTC) - datetime.fromisoformat(first.pop("ts"))) < timedelta(minutes=1)
    assert first == {
        "job": "failed", "level": "warning", "application": "flights", "problem": "broken", "failures": 1,
        "restart_in": 50,
    }  # fmt: skip


@pytest.mark.parametrize(
    "refusal", [PySparkException("no file system\nmore"), Py4JError("no file system"), BrokerUnreachableError("k", "x")]
)
def test_a_start_that_fails_is_tried_again(refusal: Exception) -> None:
    reported = run([Query(0, refuses=refusal), Query(1, fails=False)], give_up=timedelta(minutes=5), step=1)
    assert [line["job"] for line in reported] == ["failed", "batch"]


def test_a_query_that_just_stops_is_a_failure() -> None:
    query = Query(0, fails=False)
    query.stopped = True
    reported: list[str] = []
    starts = iter([query])
    with pytest.raises(StopIteration):
        supervise(
            lambda: QueryRun(next(starts)),  # type: ignore[arg-type]  # stands in for a query
            report(reported),
            Failures(timedelta(minutes=5), LeaseObservation(1)),
            threading.Event(),
            Events(),
        )
    assert json.loads(reported[0])["problem"] == "it ended without an error"


class SetBack(Events):
    """Sets the system clock back an hour after the second batch."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.monotonic = Clock(1e9), Clock()

    def after(self, progress: Any) -> None:
        super().after(progress)
        self.clock.now -= 3600.0 if self.batches == 2 else 0.0


@pytest.mark.parametrize(
    ("catches_up", "lines"), [(False, ["batch", "batch", "failed", "batch"]), (True, ["batch"] * 4)]
)
def test_a_query_whose_clock_was_set_back_is_started_again(
    monkeypatch: pytest.MonkeyPatch, *, catches_up: bool, lines: list[str]
) -> None:
    """Also if each look finds a batch. One that catches up ends when it has read all, and not by the clock."""
    events = SetBack()
    monkeypatch.setattr("spark_app.run.supervise.WallClock", lambda: WallClock(events.clock, events.monotonic))
    queries = [Query(3, catches_up=catches_up), Query(1, fails=False)]
    reported = run(queries, give_up=timedelta(minutes=5), step=1, events=events)
    assert [line["job"] for line in reported] == lines


def test_a_query_that_has_caught_up_is_followed_by_the_next_at_once() -> None:
    reported = run([Query(2, catches_up=True), Query(1, fails=False)], give_up=timedelta(minutes=5), step=1)
    assert [line["job"] for line in reported] == ["batch", "batch", "batch"]


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Py4JNetworkError("gone"), SparkExitedError),
        (ForeignCheckpointError("f", ["d"]), ForeignCheckpointError),
        (LeaseLostError("f", "another"), LeaseLostError),
        (
            StreamingQueryException("[STREAM_FAILED] x [CONCURRENT_STREAM_LOG_UPDATE] y\n\tat java"),
            ConcurrentCommitError,
        ),
    ],
)
def test_an_error_that_no_restart_fixes_stops_the_driver(refusal: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        run([Query(0, refuses=refusal)], give_up=timedelta(minutes=5), step=1)


def test_a_query_that_waits_for_records_is_no_batch() -> None:
    events = Events()
    queries = [Query(3), Query(2, waits=True, fails=False)]
    run(queries, give_up=timedelta(minutes=5), step=1, events=events)
    assert (events.batches, events.idles) == (5, 2)
    assert events.looks >= 5


def test_a_batch_after_an_idle_period_is_reported() -> None:
    waited = progress_of(batchId=1, numInputRows=0, durationMs={"latestOffset": 2, "triggerExecution": 2})
    query = Query(0)
    query.recentProgress += [progress_of(batchId=0), waited]
    assert [progress.batchId for progress in since(query, -1)[0]] == [0]  # type: ignore[arg-type]  # stands in for a query
    assert since(query, 0) == ([], 0)  # type: ignore[arg-type]
    query.recentProgress.append(progress_of(batchId=1))
    (progress,), last = since(query, 0)  # type: ignore[arg-type]
    assert (progress.batchId, progress.numInputRows, last) == (1, 1250, 1)


@pytest.mark.spark
def test_spark_reports_of_a_waiting_query_with_the_number_of_the_next_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's own query: its report of the idle period is no batch, and the batch after it is reported."""
    own, source = spark.newSession(), tmp_path / "source"
    own.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
    source.mkdir()
    (source / "first").write_text("a\n")
    sink = own.readStream.text(str(source)).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    stopping, reported = threading.Event(), list[tuple[int, int]]()
    for progress in batches(sink.trigger(processingTime="200 milliseconds").start(), stopping):
        if progress is not None:
            reported.append((progress.batchId, progress.numInputRows))
            if len(reported) == 2:
                stopping.set()
        elif not (source / "second").exists():
            (tmp_path / "second").write_text("b\nc\n")
            (tmp_path / "second").rename(source / "second")
    assert reported == [(0, 1), (1, 2)]


def test_a_query_is_stopped_when_its_topics_are_taken_over() -> None:
    query = Query(9)
    with pytest.raises(LeaseLostError):
        run([query], give_up=timedelta(minutes=5), step=1, events=Events(LeaseLostError("f", "another")))
    assert query.stopped


def test_progress_resets_the_count_of_failures() -> None:
    queries = [*(Query(1) for _ in range(9)), Query(0, fails=False)]
    reported = run(queries, give_up=timedelta(seconds=10), step=100)
    assert {line["failures"] for line in reported if line["job"] == "failed"} == {1}


def test_a_job_that_makes_progress_between_its_failures_goes_on() -> None:
    queries = [*(Query(1) for _ in range(9)), Query(0, fails=False)]
    run(queries, give_up=timedelta(seconds=3), step=1)
    assert queries[-1].stopped


def test_failing_without_progress_stops_the_driver_with_the_reason() -> None:
    with pytest.raises(QueryFailsError, match="failed 12 times without progress, last with: broken"):
        run([Query(0) for _ in range(20)], give_up=timedelta(seconds=10), step=1)


def test_the_pauses_grow_to_a_bound() -> None:
    failures = Failures(timedelta(days=1), lambda: 0.0)
    pauses = []
    for _ in range(20):
        failures.failed("x")
        pauses.append(failures.pause())
    assert pauses[:3] == [0.05, 0.1, 0.2]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S
