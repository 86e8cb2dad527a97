"""Reads what the alerts of a worker depend on: tables, present states, last alerts, and the progress of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.alerts.reported_rows import ReportedRows
from services.alerts.restore import answered, restore_alerts, restored, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from contracts import Application
    from services.alerts.partition import AlertPartition
    from services.alerts.tables import RowChange, Tables
    from services.runtime.call_thread import BlockingCalls
    from services.runtime.job_progress import Published
    from services.runtime.kafka.interfaces import BlockingTopicReader
    from services.runtime.kafka.values import Output
    from services.runtime.worker.partition import AssignedPartition


class AlertSources(NamedTuple):
    """The clients by which alerts are read, and the threads in which they are called."""

    tables: BlockingTopicReader
    states: BlockingTopicReader
    """The client of snapshots, alerts and dead letters."""
    progress: Callable[[Collection[int]], Mapping[int, Published] | None]
    following: BlockingCalls
    """The calls that follow the tables and the job's progress."""
    restoring: BlockingCalls
    """The calls of the client of the states, which may take minutes."""


class AlertReader:
    """Reads for the partitions of a worker, one at a time. Its methods raise TopicReadError."""

    def __init__(self, application: Application, tables: Tables, sources: AlertSources) -> None:
        self._application = application
        self._tables = tables
        self._sources = sources
        self._reported = ReportedRows(application.topics.dead_letters, sources.states)
        self._is_closed = False
        self.attempts = 0
        """The number of attempts to read more of the states, which is the progress of a restoration."""

    async def start(self) -> None:
        """Read the tables to their end."""

        def read() -> None:
            reader, is_stopping = self._sources.tables, lambda: self._is_closed
            places = answered(lambda: reader.partitions(self._tables.topics), is_stopping)
            for records in stored(reader, places or (), is_stopping):
                self._tables.apply(records)

        await self._sources.following.call(read)

    async def follow(self) -> list[RowChange]:
        """Return the changes of the tables that have come since, without waiting for more."""
        return self._tables.apply(await self._sources.following.call(self._sources.tables.poll))

    async def progress(self, numbers: Sequence[int]) -> Mapping[int, Published] | None:
        """Return the progress of the job in these partitions; None if no broker answers."""
        return await self._sources.following.call(lambda: self._sources.progress(numbers))

    async def open(self, partition: AssignedPartition, offset: int) -> AlertPartition:
        """Restore a partition whose snapshots continue at an offset. It is incomplete if the partition closes."""
        reader, is_ended = self._sources.states, self._ends_with(partition)
        return await self._sources.restoring.call(
            lambda: restored(self._application, reader, partition.number, offset, is_ended)
        )

    async def restore_alerts(self, partition: AssignedPartition, found: AlertPartition) -> None:
        """Read the alerts of a partition again. They are incomplete if the partition closes."""
        reader, is_ended = self._sources.states, self._ends_with(partition)
        await self._sources.restoring.call(lambda: restore_alerts(self._application, reader, found, is_ended))

    async def unreported(self, partition: AssignedPartition, outputs: list[Output]) -> list[Output] | None:
        """Return these records without the dead letters of rows that the topic has; None if the partition closes."""
        if not any(self._reported.is_about_row(output) for output in outputs):
            return outputs
        is_ended = self._ends_with(partition)
        found = await self._sources.restoring.call(lambda: list(self._reported.unreported(outputs, is_ended)))
        return None if is_ended() else found

    def close(self) -> None:
        """End what is being read."""
        self._is_closed = True

    def _ends_with(self, partition: AssignedPartition) -> Callable[[], bool]:
        """Return a function that returns whether to read no further."""

        def is_ended() -> bool:
            self.attempts += 1
            return partition.is_closing or self._is_closed

        return is_ended
