"""Fills an assigned partition with the evaluated snapshots and the last alerts."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import orjson

from contracts.wire import decode_snapshot
from contracts.wire.alerts import AlertRecord
from services.alerts.partition import AlertPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contracts import Application
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.runtime.topic_reader import TopicReader

log = logging.getLogger(__name__)


def restored(
    application: Application, reader: TopicReader, number: int, offset: int, is_stopping: Callable[[], bool]
) -> AlertPartition:
    """Return a partition whose snapshots continue at an offset. Raises KafkaException."""
    began = time.monotonic()
    found = AlertPartition(number, offset, [one.name for one in application.alerts])
    place = application.topics.snapshots, number
    for records in reader.read_to_end([place], is_stopping, {place: offset}):
        found.fill(_snapshots(records))
    restore_alerts(application, reader, found, is_stopping)
    seconds = round(time.monotonic() - began, 2)
    log.info("restored", extra={"facts": {"partition": number, "states": found.states.count(), "seconds": seconds}})
    return found


def restore_alerts(
    application: Application, reader: TopicReader, partition: AlertPartition, is_stopping: Callable[[], bool]
) -> None:
    """Replace the alerts of a partition by those of the topics. Raises KafkaException."""
    partition.forget_alerts()
    for alerts in application.alerts:
        topic = application.topics.derived(alerts.name)
        for records in reader.read_to_end([(topic, partition.number)], is_stopping):
            for record in records:
                if (found := _alerts(record)) is not None:
                    partition.restore(alerts.name, found)
    reader.stop()


def _snapshots(records: Sequence[Record]) -> Iterator[tuple[Record, Snapshot]]:
    for record in records:
        try:
            yield record, decode_snapshot(record.value or b"")
        except ValueError:
            continue


def _alerts(record: Record) -> AlertRecord | None:
    try:
        return AlertRecord.model_validate(orjson.loads(record.value or b""))
    except ValueError as error:
        log.warning("no alerts at %s of %s: %.200s", record.offset, record.topic, error)
        return None
