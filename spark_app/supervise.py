"""Keep the query running: restart it inside this driver when it fails, and end the driver when that does not help."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.errors import BrokerUnreachable, KeepsFailing, SparkGone
from spark_app.report import Report

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 15.0
LOOK_S = 1


@dataclass
class Failures:
    """The failures since the query last got anywhere."""

    give_up: timedelta
    count: int = 0
    since: float | None = None

    def pause(self) -> float:
        """How long to wait before the next start: at once at first, then longer each time."""
        return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self.count - 1))

    def failed(self, now: float, problem: str) -> None:
        """Note a failure. Raises KeepsFailing when they have gone on for too long."""
        self.count += 1
        self.since = now if self.since is None else self.since
        if now - self.since > self.give_up.total_seconds():
            raise KeepsFailing(self.count, problem)

    def progressed(self) -> None:
        """A batch was committed: what failed before does not count any more."""
        self.count, self.since = 0, None


def supervise(
    start: Callable[[], StreamingQuery],
    report: Report,
    failures: Failures,
    stopping: threading.Event,
    clock: Callable[[], float],
) -> None:
    """Run the query until `stopping` is set. Raises KeepsFailing, SparkGone, and what `start` refuses for good."""
    while not stopping.is_set():
        problem = attempt(start, report, failures, stopping)
        if stopping.is_set():
            return
        failures.failed(clock(), problem)
        report.failed(problem, failures.count, failures.pause())
        stopping.wait(failures.pause())


def attempt(start: Callable[[], StreamingQuery], report: Report, failures: Failures, stopping: threading.Event) -> str:
    """Run the query once; gives why it ended. Raises SparkGone."""
    report.starting()
    try:
        query = start()
        report.running()
        follow(query, report, failures, stopping)
    except Py4JNetworkError as error:
        raise SparkGone from error
    except (PySparkException, Py4JError, BrokerUnreachable) as error:
        return first_line(str(error))
    return "it ended without an error"


def follow(query: StreamingQuery, report: Report, failures: Failures, stopping: threading.Event) -> None:
    """Report each batch of a running query. Raises PySparkException when it fails."""
    last = -1
    while not query.awaitTermination(LOOK_S):
        for progress in query.recentProgress:
            if progress.batchId > last:
                last = progress.batchId
                failures.progressed()
                report.batch(progress)
        if stopping.is_set():
            query.stop()


def first_line(problem: str) -> str:
    """The line of an error that says what happened."""
    return next((line.strip() for line in problem.splitlines() if line.strip()), "unknown")
