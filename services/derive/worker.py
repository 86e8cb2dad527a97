"""The main path: read snapshots, write the records derived from them, commit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.metrics import derive as metrics
from contracts.wire import decode_snapshot
from services.derive.derive import derived, failed
from services.derive.errors import EverythingFailsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contracts import Application
    from contracts.metrics import Metric
    from contracts.records.record import Record
    from services.derive.derive import OutputRecord
    from services.derive.kafka import Kafka

log = logging.getLogger(__name__)

MOST_FAILURES = 100
"""The number of failed snapshots in a row at which the worker stops."""


class DeriveWorker:
    """Derives until it must stop. A snapshot is committed after all records derived from it; `count` counts both."""

    def __init__(
        self,
        application: Application,
        kafka: Kafka,
        partitions: Mapping[str, int],
        count: Callable[[Metric, int], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._application = application
        self._kafka = kafka
        self._partitions = partitions
        self._count = count
        self._stopping = stopping
        self._failures = 0

    def run(self) -> None:
        """Work until it must stop, after the current snapshots. Raises KafkaFailedError, EverythingFailsError."""
        while not self._stopping():
            records = self._kafka.read()
            if self._kafka.settle(records, [written for record in records for written in self._derived(record)]):
                self._count(metrics.SNAPSHOTS, len(records))

    def _derived(self, record: Record) -> Sequence[OutputRecord]:
        """Return the records for one snapshot, none for an undecodable one: the enrichment worker reports that."""
        try:
            snapshot = decode_snapshot(record.value or b"")
        except ValueError as error:
            self._count(metrics.REJECTED, 1)
            log.warning("no snapshot at %s of partition %s: %.200s", record.offset, record.partition, error)
            return ()
        try:
            said = tuple(derived(self._application, snapshot, self._partitions))
        except Exception as error:  # noqa: BLE001 (whatever the application's function raises)
            return (self._failed(snapshot.device_id, record, error),)
        self._failures = 0
        self._count(metrics.WRITTEN, len(said))
        return said

    def _failed(self, device_id: str, record: Record, error: Exception) -> OutputRecord:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            raise EverythingFailsError(self._failures, error) from error
        self._count(metrics.FAILED, 1)
        log.warning("nothing derived from offset %s of partition %s", record.offset, record.partition, exc_info=error)
        return failed(self._application, device_id, record, error)


def names(application: Application) -> Iterator[str]:
    """The topics of the derived states."""
    yield from (application.topics.derived(one.name) for one in application.derived)
