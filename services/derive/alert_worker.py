"""The part of the derive worker that follows tables and partitions, for alerts and derived states with tables."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from contracts.metrics import derive as metrics
from services.derive.kafka import failed
from services.derive.reported_rows import ReportedRows
from services.derive.restore import restore_alerts, restored

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from contracts import Application
    from contracts.metrics import Metric
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.derive.alert_partition import AlertPartition
    from services.derive.alerting import Alerting
    from services.derive.derive import OutputRecord
    from services.derive.kafka import Kafka
    from services.derive.tables import RowChange, Tables
    from services.runtime.job_progress import Published
    from services.runtime.topic_reader import TopicReader

PROGRESS_S = 1.0
"""The pause between two looks at the progress of the job."""


@contextmanager
def reading(topics: str) -> Iterator[None]:
    """Raise KafkaFailedError if Kafka does not return these topics."""
    try:
        yield
    except KafkaException as error:
        raise failed(f"{topics} cannot be read", error.args[0]) from error


class AlertWorker:
    """See `AssignmentListener`. It reads the tables to their end before the worker joins the group."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        application: Application,
        alerting: Alerting,
        tables: Tables,
        reader: TopicReader,
        count: Callable[[Metric, int], None],
        stopping: Callable[[], bool],
        progress: Callable[[Collection[int]], Mapping[int, Published]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application
        self._alerting = alerting
        self._tables = tables
        self._reader = reader
        self._count = count
        self._stopping = stopping
        self._reported = ReportedRows(application.topics.dead_letters, reader, stopping)
        self._progress = progress
        self._clock = clock
        self._next_s = clock()
        self._partitions: dict[int, AlertPartition] = {}
        self._topics = {application.topics.derived(one.name) for one in application.alerts}
        self._is_unsure = False
        self._evaluated = 0

    @property
    def is_busy(self) -> bool:
        """Return whether there is more to do at once."""
        return self._alerting.is_busy

    def start(self) -> None:
        """Read the tables to their end. Raises KafkaFailedError."""
        with reading("the reference tables"):
            self._change(self._tables.read(self._stopping))

    def assigned(self, offsets: Mapping[int, int]) -> None:
        """See `AssignmentListener`."""
        with reading("the snapshots and alerts"):
            found = restored(self._application, self._reader, offsets, self._stopping)
        for partition in found:
            self._partitions[partition.number] = partition
            self._alerting.assign(partition)

    def revoked(self, numbers: Collection[int]) -> None:
        """See `AssignmentListener`."""
        self._alerting.revoke(numbers)
        for number in numbers:
            self._partitions.pop(number, None)

    def evaluate(self, record: Record, snapshot: Snapshot | None) -> list[OutputRecord]:
        """Return the alert records of the next record of snapshots."""
        found = list(self._alerting.evaluate(record, snapshot))
        self._evaluated += sum(one.topic in self._topics for one in found)
        return self._unreported(found)

    def derived(self, record: Record, snapshot: Snapshot) -> Iterator[OutputRecord]:
        """Yield what is derived by tables from a snapshot that was evaluated."""
        yield from self._alerting.derived(record, snapshot)

    def settled(self, *, done: bool) -> None:
        """Apply the changes if they are written. If not, some of them may be on the topics."""
        if done:
            self._alerting.accept()
            self._count(metrics.ALERTS, self._evaluated)
        else:
            self._alerting.discard()
            self._is_unsure = True
        self._evaluated = 0

    def prepare(self) -> bool:
        """Read the alerts again after a write with an unknown result. Raises KafkaFailedError.

        Return False if the worker was to stop before all were read: it must not evaluate anything by the others.
        """
        if self._is_unsure and not self._stopping():
            with reading("the alerts"):
                restore_alerts(self._application, self._reader, self._partitions, self._stopping)
            self._is_unsure = self._stopping()
        return not self._is_unsure

    def work(self, kafka: Kafka) -> None:
        """Follow the tables, and write the changes by changed rules, pending alerts, and expired windows."""
        with reading("the reference tables"):
            self._change(self._tables.follow())
        if not self.prepare():
            return
        is_busy, dead_letters = self._alerting.is_busy, self._tables.dead_letters(self._partitions)
        self._reach()
        changes = self._alerting.work()
        outputs, dead_letters = self._unreported(changes), self._unreported(dead_letters)
        self._evaluated = sum(one.topic in self._topics for one in outputs)
        done = kafka.write([*outputs, *dead_letters]) if outputs or dead_letters or is_busy else True
        if done:
            self._tables.reported(self._partitions)
            self._count(metrics.WRITTEN, len(outputs) - self._evaluated)
        self.settled(done=done)

    def _unreported(self, outputs: Iterable[OutputRecord]) -> list[OutputRecord]:
        with reading("the dead letters"):
            return list(self._reported.unreported(outputs))

    def _reach(self) -> None:
        if self._clock() >= self._next_s:
            self._alerting.reach(self._progress(self._partitions))
            self._next_s = self._clock() + PROGRESS_S

    def _change(self, changes: Iterable[RowChange]) -> None:
        for table, key, row in changes:
            self._alerting.change_row(table, key, row)
            self._count(metrics.ROWS, 1)
