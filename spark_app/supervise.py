"""Restarts the query inside this driver when it fails, and stops the driver when it keeps failing."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.errors import (
    BrokerUnreachableError,
    CheckpointUnreachableError,
    ConcurrentCommitError,
    QueryFailsError,
    SparkExitedError,
)
from spark_app.report import JobReport
from spark_app.start import QueryRun

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 15.0
LOOK_S = 1
CONCURRENT_COMMIT = "[CONCURRENT_STREAM_LOG_UPDATE]"
"""The condition in Spark's error, which it raises at the end of a batch that another job has committed."""


@dataclass
class Failures:
    """The failures since the query's last progress."""

    give_up: timedelta
    clock: Callable[[], float]
    count: int = 0
    since: float | None = None

    def pause(self) -> float:
        """Return how long to wait before the next start: at once at first, then longer each time."""
        return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self.count - 1))

    def failed(self, problem: str) -> None:
        """Note a failure. Raises QueryFailsError when they have gone on for too long."""
        now = self.clock()
        self.count += 1
        self.since = now if self.since is None else self.since
        if now - self.since > self.give_up.total_seconds():
            raise QueryFailsError(self.count, problem)

    def progressed(self) -> None:
        """Forget the failures before a committed batch."""
        self.count, self.since = 0, None


def supervise(
    start: Callable[[], QueryRun],
    report: JobReport,
    failures: Failures,
    stopping: threading.Event,
    after_batch: Callable[[StreamingQueryProgress], object],
) -> None:
    """Run the query until `stopping` is set. Raises QueryFailsError, and what `attempt` and `start` refuse for good."""
    while not stopping.is_set():
        problem = attempt(start, report, failures, stopping, after_batch)
        if stopping.is_set():
            return
        if problem is None:
            continue
        failures.failed(problem)
        report.failed(problem, failures.count, failures.pause())
        stopping.wait(failures.pause())


def attempt(
    start: Callable[[], QueryRun],
    report: JobReport,
    failures: Failures,
    stopping: threading.Event,
    after_batch: Callable[[StreamingQueryProgress], object],
) -> str | None:
    """Run the query once; return why it failed, or None when it has caught up.

    Raises SparkExitedError and ConcurrentCommitError.
    """
    report.starting()
    try:
        run = start()
        report.running()
        for progress in batches(run.query, stopping):
            failures.progressed()
            report.batch(progress)
            after_batch(progress)
    except Py4JNetworkError as error:
        raise SparkExitedError from error
    except (PySparkException, Py4JError, BrokerUnreachableError, CheckpointUnreachableError) as error:
        if CONCURRENT_COMMIT in str(error):
            raise ConcurrentCommitError from error
        return first_line(str(error))
    return None if run.is_catch_up else "it ended without an error"


def batches(query: StreamingQuery, stopping: threading.Event) -> Iterator[StreamingQueryProgress]:
    """Yield each committed batch of a running query until it ends. Raises PySparkException when it fails."""
    last, ended = -1, False
    while not ended:
        ended = bool(query.awaitTermination(LOOK_S))
        for progress in query.recentProgress:
            if progress.batchId > last:
                last = progress.batchId
                yield progress
        if stopping.is_set():
            query.stop()


def first_line(problem: str) -> str:
    """Return the first line of an error that is not empty."""
    return next((line.strip() for line in problem.splitlines() if line.strip()), "unknown")
