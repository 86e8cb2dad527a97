"""Fills an assigned partition with the evaluated snapshots and the last alerts."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import orjson

from contracts.wire import decode_snapshot
from contracts.wire.alert_record import AlertRecord
from services.alerts.partition import AlertPartition
from services.alerts.present_states import position_of, position_of_key
from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import BoundedRange, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from contracts import Application
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.alerts.present_states import Position
    from services.runtime.kafka.interfaces import BlockingTopicReader

log = logging.getLogger(__name__)

T = TypeVar("T")
TRY_S = 1.0
"""The time after which a request for the ends is repeated, unless the reader is to stop."""


def stored(
    reader: BlockingTopicReader,
    partitions: Collection[Partition],
    is_stopping: Callable[[], bool],
    before: int = sys.maxsize,
) -> Iterator[Sequence[Record]]:
    """Yield the records before the present ends of partitions, and before an offset. It waits for a broker.

    Raises TopicReadError.
    """
    bounds = answered(lambda: reader.bounds(partitions, TRY_S), is_stopping)
    if bounds is not None:
        ranges = {partition: BoundedRange(start, min(end, before)) for partition, (start, end) in bounds.items()}
        yield from reader.read(ranges, is_stopping)


def answered(request: Callable[[], T], is_stopping: Callable[[], bool]) -> T | None:
    """Repeat a request until a broker answers; return None if the reader is to stop first. Raises TopicReadError."""
    reported = ""
    while not is_stopping():
        try:
            return request()
        except TopicReadError as error:
            if "AUTHORIZATION" in error.code:
                raise
            if error.code != reported:
                log.warning("%s; the request is repeated", error)
                reported = error.code
    return None


def restored(
    application: Application, reader: BlockingTopicReader, number: int, offset: int, is_stopping: Callable[[], bool]
) -> AlertPartition:
    """Return a partition whose snapshots continue at an offset. Raises TopicReadError."""
    found = AlertPartition(number, offset, [alerts.name for alerts in application.alerts])
    for records in stored(reader, [Partition(application.topics.snapshots, number)], is_stopping, offset):
        found.fill(list(_windows(records)))
    restore_alerts(application, reader, found, is_stopping)
    return found


def restore_alerts(
    application: Application, reader: BlockingTopicReader, partition: AlertPartition, is_stopping: Callable[[], bool]
) -> None:
    """Replace the alerts of a partition by those of the topics. Raises TopicReadError.

    The end of the snapshots is read after the alerts, which have offsets before it.
    """
    partition.forget_alerts()
    for alerts in application.alerts:
        place = Partition(application.topics.derived(alerts.name), partition.number)
        for records in stored(reader, [place], is_stopping):
            for record in records:
                if record.value is None:
                    _forget(partition, alerts.name, record)
                elif (found := _alerts(record)) is not None:
                    partition.restore(alerts.name, found)
    snapshots = Partition(application.topics.snapshots, partition.number)
    if (bounds := answered(lambda: reader.bounds([snapshots], TRY_S), is_stopping)) is not None:
        partition.drop_offsets(bounds[snapshots].end)
    reader.stop()


def _windows(records: Sequence[Record]) -> Iterator[tuple[Position, Snapshot | None, bytes | None]]:
    """Yield the windows of records, with their snapshots; without one, a tombstone has removed them."""
    for record in records:
        with suppress(ValueError):
            if record.value is None:
                yield position_of_key(record.key), None, None
            else:
                snapshot = decode_snapshot(record.value)
                yield position_of(snapshot.window), snapshot, record.value


def _forget(partition: AlertPartition, name: str, tombstone: Record) -> None:
    with suppress(ValueError):
        partition.forget(name, position_of_key(tombstone.key))


def _alerts(record: Record) -> AlertRecord | None:
    try:
        return AlertRecord.model_validate(orjson.loads(record.value or b""))
    except ValueError as error:
        log.warning("no alerts at %s of %s: %.200s", record.offset, record.topic, error)
        return None
