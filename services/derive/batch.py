"""The records that follow from a batch of snapshots: alerts, derived states, dead letters."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from contracts.errors import AUTHOR_ERRORS, described
from contracts.metrics import derive as metrics
from contracts.wire import decode_snapshot
from services.derive.derive import derived, failed
from services.runtime.errors import EverythingFailsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from contracts import Application
    from contracts.metrics import Metric
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.alerts.evaluator import AlertEvaluator
    from services.runtime.kafka.values import Output
    from services.runtime.worker.alarm import Alarm

log = logging.getLogger(__name__)

MOST_FAILURES = 100
"""The number of failed snapshots in a row at which the worker stops."""


class DerivedBatch:
    """The outputs of a batch of snapshots of one partition, and what to count when they are written.

    `alarm` has the results of the functions, before the batch and then after it. `tables` has the values of the
    reference tables; without an evaluator they are unused. Raises EverythingFailsError.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # its inputs
        self,
        application: Application,
        records: Sequence[Record],
        evaluator: AlertEvaluator | None,
        partition_counts: Mapping[str, int],
        tables: Mapping[str, Mapping[str, BaseModel]],
        alarm: Alarm,
    ) -> None:
        self._application = application
        self._evaluator = evaluator
        self._partition_counts = partition_counts
        self._tables = tables
        self._by_snapshot = tuple(declared for declared in application.derived if not declared.tables)
        self._by_tables = tuple(declared for declared in application.derived if declared.tables)
        self._alerts = {application.topics.derived(alerts.name) for alerts in application.alerts}
        self.alarm = alarm
        self.counts: Counter[Metric] = Counter({metrics.SNAPSHOTS: len(records)})
        self.outputs = [output for record in records for output in self._outputs(record)]

    def _outputs(self, record: Record) -> Iterator[Output]:
        """Yield the records for one snapshot, none for an undecodable one: the enrichment worker reports that."""
        if record.value is None:
            yield from self._evaluated(record, None)
            return
        try:
            snapshot = decode_snapshot(record.value)
        except ValueError as error:
            if self._evaluator is not None:
                self._evaluator.skip(record)
            self.counts[metrics.REJECTED] += 1
            log.warning("no snapshot at %s of partition %s: %.200s", record.offset, record.partition, error)
            return
        yield from self._evaluated(record, snapshot)
        yield from self._derived(record, snapshot)

    def _evaluated(self, record: Record, snapshot: Snapshot | None) -> Iterator[Output]:
        if self._evaluator is not None:
            for one in self._evaluator.evaluate(record, snapshot):
                self.counts[metrics.ALERTS] += one.topic in self._alerts
                yield one

    def _derived(self, record: Record, snapshot: Snapshot) -> Sequence[Output]:
        declared = self._by_snapshot
        if self._evaluator is not None and self._evaluator.is_present(record, snapshot):
            declared += self._by_tables
        try:
            outputs = tuple(derived(self._application, declared, snapshot, self._partition_counts, self._tables))
        except AUTHOR_ERRORS as error:
            return (self._failed(snapshot.device_id, record, error),)
        self.alarm.note(failed=False)
        self.counts[metrics.WRITTEN] += len(outputs)
        return outputs

    def _failed(self, device_id: str, record: Record, error: BaseException) -> Output:
        if self.alarm.note(failed=True, subject=device_id):
            raise EverythingFailsError(
                f"nothing could be derived from snapshots of {self.alarm.failed} keys in a row, the last time because "
                f"of {described(error)}",
                "Fix the function of the derived state, then start the worker again: it goes on where it was",
            ) from error
        self.counts[metrics.FAILED] += 1
        log.warning("nothing derived from offset %s of partition %s", record.offset, record.partition, exc_info=error)
        return failed(self._application, device_id, record, error)
