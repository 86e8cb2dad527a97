"""The interface between the loop of a worker and the work of its consumer group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from contracts.metrics import Metric
    from contracts.records.record import Record
    from services.runtime.worker.assignment import AssignmentFigures
    from services.runtime.worker.partition import AssignedPartition, CreateTask

S = TypeVar("S")
"""The state that a handler keeps of one assigned partition."""


class WorkerLimits(NamedTuple):
    """The limits of a worker."""

    batch: int
    """The maximum number of records of a partition that are processed at once."""
    uncommitted: int
    """The number of offsets that a partition is read beyond the first unfinished one."""
    commit_every: timedelta
    drain: timedelta
    """The time for which a revoked partition waits for the work in progress."""
    stop_within: timedelta
    """The time for which a worker that stops waits for the work in progress."""
    report_every: timedelta
    """The interval at which the lag is measured."""
    stuck_after: timedelta
    """The time without progress, or without a poll, after which the worker counts as stuck."""
    idle: timedelta | None = None
    """The time without a record after which a partition is processed without records; never if unset."""


class WorkerMetrics(NamedTuple):
    """The metrics that the loop itself counts, with their labels."""

    commits: Metric
    kafka_errors: Metric
    lag: Metric
    labels: tuple[str, ...] = ()


class Handler(ABC, Generic[S]):
    """The work of one consumer group's member. All its methods are called in the event loop.

    Those that are not abstract do nothing unless a handler has something to do there.

    An error of `start`, `open`, `process`, or a task of `begin` stops the worker. The other methods raise none.
    """

    loop_metrics: WorkerMetrics

    async def start(self) -> None:
        """Prepare, before the worker joins the group. It is cancelled when the worker stops."""

    def begin(self, spawn: CreateTask) -> None:
        """Start the tasks that belong to no partition, now or later. They are cancelled when the worker ends."""

    @abstractmethod
    async def open(self, partition: AssignedPartition) -> S:
        """Return the state of a partition that was assigned. Its records wait meanwhile."""

    @abstractmethod
    async def process(self, state: S, records: Sequence[Record]) -> None:
        """Process the next records of a partition, in the order of their offsets.

        They no longer count in its `backpressure`: the handler counts what it keeps. It tracks each offset, and
        finishes it when its outputs are acknowledged. The next records wait until this returns. There are none if none
        came within `WorkerLimits.idle`.
        """

    @abstractmethod
    def abandon(self, state: S) -> None:
        """Drop the state of a partition: it was revoked, or is read again. Its tasks are cancelled afterwards."""

    def make_room(self) -> None:
        """Free memory if that is possible: reading is paused because too much is unfinished."""

    def stop(self) -> None:
        """Start nothing more; the worker is about to end."""

    @abstractmethod
    def progress(self) -> float:
        """Return a number that grows while the work moves. Attempts count: during an outage they are the work."""
        ...

    def problem(self) -> str | None:
        """Return why it cannot work now; None if it can."""
        return None

    def measure(self, figures: AssignmentFigures) -> None:
        """Update the gauges."""

    def report(self) -> None:
        """Log the metrics, at the interval of the limits."""

    async def close(self) -> None:
        """Release what `start` opened."""
