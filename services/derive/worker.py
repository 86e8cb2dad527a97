"""The main path: read snapshots, write the records derived from them, commit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.errors import AUTHOR_ERRORS
from contracts.metrics import derive as metrics
from contracts.wire import decode_snapshot
from services.derive.derive import derived, failed
from services.derive.errors import EverythingFailsError, UnequalPartitionsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contracts import Application
    from contracts.metrics import Metric
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.derive.alert_worker import AlertWorker
    from services.derive.derive import OutputRecord
    from services.derive.kafka import Kafka

FOLLOW_S = 0.05
"""The time for which a worker with alerts waits for snapshots before it polls for changed rules."""

log = logging.getLogger(__name__)

MOST_FAILURES = 100
"""The number of failed snapshots in a row at which the worker stops."""


class DeriveWorker:
    """Derives records until a stop. A snapshot is committed after all its derived records; `count` counts both."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        application: Application,
        kafka: Kafka,
        partitions: Mapping[str, int],
        count: Callable[[Metric, int], None],
        stopping: Callable[[], bool],
        alerts: AlertWorker | None = None,
    ) -> None:
        self._application = application
        self._declared = tuple(one for one in application.derived if not one.tables)
        self._kafka = kafka
        self._partitions = partitions
        self._count = count
        self._stopping = stopping
        self._alerts = alerts
        self._failures = 0

    def run(self) -> None:
        """Run until a stop, then finish the current snapshots. Raises KafkaFailedError, EverythingFailsError."""
        while not self._stopping():
            if self._alerts is None:
                self._settle(self._kafka.read())
                continue
            records = self._kafka.read(0 if self._alerts.is_busy else FOLLOW_S)
            if not self._stopping() and self._alerts.prepare():  # else some alerts may not be restored
                self._alerts.settled(done=self._settle(records))
                self._alerts.work(self._kafka)

    def _settle(self, records: Sequence[Record]) -> bool:
        done = self._kafka.settle(records, [written for record in records for written in self._written(record)])
        if done:
            self._count(metrics.SNAPSHOTS, len(records))
        return done

    def _written(self, record: Record) -> Iterator[OutputRecord]:
        """Yield the records for one snapshot, none for an undecodable one: the enrichment worker reports that."""
        if record.value is None and self._alerts is not None:
            yield from self._alerts.evaluate(record, None)
        try:
            snapshot = decode_snapshot(record.value or b"")
        except ValueError as error:
            self._count(metrics.REJECTED, 1)
            log.warning("no snapshot at %s of partition %s: %.200s", record.offset, record.partition, error)
            return
        if self._alerts is not None:
            yield from self._alerts.evaluate(record, snapshot)
        yield from self._derived(record, snapshot)

    def _derived(self, record: Record, snapshot: Snapshot) -> Sequence[OutputRecord]:
        try:
            outputs = (
                *derived(self._application, self._declared, snapshot, self._partitions, {}),
                *(() if self._alerts is None else self._alerts.derived(record, snapshot)),
            )
        except AUTHOR_ERRORS as error:
            return (self._failed(snapshot.device_id, record, error),)
        self._failures = 0
        self._count(metrics.WRITTEN, len(outputs))
        return outputs

    def _failed(self, device_id: str, record: Record, error: BaseException) -> OutputRecord:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            raise EverythingFailsError(self._failures, error) from error
        self._count(metrics.FAILED, 1)
        log.warning("nothing derived from offset %s of partition %s", record.offset, record.partition, exc_info=error)
        return failed(self._application, device_id, record, error)


def names(application: Application) -> Iterator[str]:
    """The topics of the derived states, of the alerts, and of the tables of their rules."""
    topics = application.topics
    yield from (topics.derived(one) for one in application.derived_names)
    yield from (topics.table(one) for one in application.tables if application.reads_tables)


def check_partitions(application: Application, partitions: Mapping[str, int]) -> None:
    """Require that alerts are in the partitions of their snapshots. Raises UnequalPartitionsError."""
    wanted = partitions[application.topics.snapshots]
    for one in application.alerts:
        if (found := partitions[topic := application.topics.derived(one.name)]) != wanted:
            raise UnequalPartitionsError(topic, found, wanted)
