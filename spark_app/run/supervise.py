"""Restarts a query inside this driver when it fails, and gives up when it keeps failing."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.errors import (
    BrokerUnreachableError,
    CheckpointUnreachableError,
    ClockSetBackError,
    ConcurrentCommitError,
    QueryFailsError,
    SparkExitedError,
)
from spark_app.run.report import QueryReport
from spark_app.run.start import QueryRun
from spark_app.run.wall_clock import WallClock

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 15.0
LOOK_S = 1
RAN = "addBatch"
"""The phase of a batch in which it reads and writes records."""
CONCURRENT_COMMIT = "[CONCURRENT_STREAM_LOG_UPDATE]"
"""The condition in Spark's error, which it raises at the end of a batch that another job has committed."""

TEMPORARY = (PySparkException, Py4JError, BrokerUnreachableError, CheckpointUnreachableError, ClockSetBackError)
"""The errors after which the query starts again."""


@dataclass
class Failures:
    """The failures since the query's last progress."""

    give_up: timedelta
    clock: Callable[[], float]
    count: int = 0
    since: float | None = None
    problem: str = ""
    """The last one."""

    def pause(self) -> float:
        """Return how long to wait before the next start: at once at first, then longer each time."""
        return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self.count - 1))

    def failed(self, problem: str) -> None:
        """Count a failure. Raises QueryFailsError after too long a time without progress."""
        now = self.clock()
        self.count, self.problem = self.count + 1, problem
        self.since = now if self.since is None else self.since
        if now - self.since > self.give_up.total_seconds():
            raise QueryFailsError(self.count, problem)

    def progressed(self) -> None:
        """Forget the failures before a committed batch."""
        self.count, self.since, self.problem = 0, None, ""


class Listener(Protocol):
    """Follows a running query."""

    def after(self, progress: StreamingQueryProgress) -> None:
        """Handle a committed batch."""

    def look(self) -> None:
        """Handle a query that runs. Called each second, after its committed batches."""

    def idle(self) -> None:
        """Handle a query that waits for records. A query in real-time mode commits empty batches instead."""


def supervise(
    start: Callable[[], QueryRun],
    report: QueryReport,
    failures: Failures,
    stopping: threading.Event,
    listener: Listener,
) -> None:
    """Run the query until `stopping` is set. Raises QueryFailsError, and permanent errors of `attempt` and `start`."""
    while not stopping.is_set():
        problem = attempt(start, report, failures, stopping, listener)
        if stopping.is_set():
            return
        if problem is None:
            continue
        failures.failed(problem)
        report.failed(problem, failures.count, failures.pause())
        stopping.wait(failures.pause())


def attempt(
    start: Callable[[], QueryRun],
    report: QueryReport,
    failures: Failures,
    stopping: threading.Event,
    listener: Listener,
) -> str | None:
    """Run the query once; return why it failed, or None when it has caught up.

    Raises SparkExitedError and ConcurrentCommitError.
    """
    report.starting()
    try:
        run = start()
        report.running()
        wall_clock = WallClock()

        def look() -> None:
            if not run.is_catch_up:  # which ends when it has read all
                wall_clock.check()
            listener.look()

        try:
            for progress in batches(run.query, stopping, look):
                if progress is None:
                    report.idle()
                    listener.idle()
                else:
                    failures.progressed()
                    report.batch(progress)
                    listener.after(progress)
        finally:
            run.query.stop()
    except Py4JNetworkError as error:
        raise SparkExitedError from error
    except TEMPORARY as error:
        if CONCURRENT_COMMIT in str(error):
            raise ConcurrentCommitError from error
        return first_line(str(error))
    return None if run.is_catch_up else "it ended without an error"


def batches(
    query: StreamingQuery, stopping: threading.Event, look: Callable[[], object] = lambda: None
) -> Iterator[StreamingQueryProgress | None]:
    """Yield each committed batch of a running query until it ends, and None when it waits for records.

    Call `look` each second.
    Raises PySparkException when it fails.
    """
    last, ended = -1, False
    while not ended:
        ended = bool(query.awaitTermination(LOOK_S))
        committed, last = since(query, last)
        yield from committed
        look()
        if not ended and not query.status["isTriggerActive"]:
            yield None
        if stopping.is_set():
            query.stop()


def since(query: StreamingQuery, last: int) -> tuple[list[StreamingQueryProgress], int]:
    """Return the committed batches after this one, and the number of the last committed batch.

    Most calls find one batch at most; reading a batch costs a millisecond.
    """
    newest = query.lastProgress
    if newest is None:
        return [], last
    committed = newest.batchId if is_batch(newest) else newest.batchId - 1
    if committed <= last:
        return [], last
    if is_batch(newest) and committed == last + 1:
        return [newest], committed
    newer = [progress for progress in query.recentProgress if progress.batchId > last and is_batch(progress)]
    return newer, max((progress.batchId for progress in newer), default=committed)


def is_batch(progress: StreamingQueryProgress) -> bool:
    """Return whether a batch ran.

    Every ten seconds Spark reports of a query that waits for records, with the number of the batch that comes next.
    """
    return RAN in progress.durationMs


def first_line(problem: str) -> str:
    """Return the first line of an error that is not empty."""
    return next((line.strip() for line in problem.splitlines() if line.strip()), "unknown")
