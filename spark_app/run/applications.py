"""Runs the applications of a job in parallel: one that gives up does not stop the others."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from pyspark.sql import SparkSession

    from spark_app.run.report import QueryReport

log = logging.getLogger(__name__)

LOOK_S = 0.5


class Runnable(Protocol):
    """The job of one application."""

    name: str
    report: QueryReport

    def run(self, spark: SparkSession, stopping: threading.Event) -> None:
        """Run until `stopping` is set. Raises StateloopError when it gives up."""
        ...


def run_all(
    jobs: Sequence[Runnable], spark: SparkSession, stopping: threading.Event, *, retry_after: timedelta
) -> None:
    """Run all until `stopping` is set. When all have given up, raise the error of the last one.

    An application that gives up starts again after `retry_after`, while others run. An error that an operator has to
    remedy is no exception: a restart of the job would stop the others.
    """
    given_up = GivenUp(len(jobs), stopping)
    with ThreadPoolExecutor(len(jobs), thread_name_prefix="application") as threads:
        list(threads.map(partial(keep_running, spark=spark, given_up=given_up, retry_after=retry_after), jobs))
    if given_up.are_all() and given_up.last is not None:
        raise given_up.last


def keep_running(job: Runnable, spark: SparkSession, given_up: GivenUp, retry_after: timedelta) -> None:
    """Run one application until the job is stopped, or all have given up."""
    while not given_up.is_over():
        try:
            job.run(spark, given_up.stopping)
        except Exception as error:  # a fault in one application must not stop the others
            if not isinstance(error, StateloopError):
                log.exception("the application %s failed", job.name)
            given_up.add(job.name, error)
            job.report.gave_up(str(error))
            if not given_up.retries(job.name, retry_after.total_seconds()):
                return


class GivenUp:
    """The applications of a job that have given up, and the number of all."""

    def __init__(self, applications: int, stopping: threading.Event) -> None:
        self.stopping = stopping
        self.last: Exception | None = None
        self._applications = applications
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def add(self, name: str, error: Exception) -> None:
        """Note that an application has given up."""
        with self._lock:
            self._names.add(name)
            self.last = error

    def are_all(self) -> bool:
        """Return whether no application runs any more."""
        return len(self._names) == self._applications

    def is_over(self) -> bool:
        """Return whether the job ends."""
        return self.stopping.is_set() or self.are_all()

    def retries(self, name: str, after_s: float) -> bool:
        """Wait, and take the application back; return False when the job ends first."""
        end = time.monotonic() + after_s
        while time.monotonic() < end and not self.is_over():
            self.stopping.wait(LOOK_S)
        with self._lock:
            if self.is_over():
                return False
            self._names.remove(name)
            return True
