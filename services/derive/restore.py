"""Fills an assigned partition with the evaluated snapshots and the last alerts."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import orjson

from contracts.wire import decode_snapshot
from contracts.wire.alerts import AlertRecord
from services.derive.alert_partition import AlertPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contracts import Application
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.runtime.topic_reader import TopicReader

log = logging.getLogger(__name__)


def restored(
    application: Application, reader: TopicReader, offsets: Mapping[int, int], is_stopping: Callable[[], bool]
) -> list[AlertPartition]:
    """Return partitions by the offsets at which their snapshots continue. Raises KafkaException."""
    began, names = time.monotonic(), [one.name for one in application.alerts]
    found = {number: AlertPartition(number, offset, names) for number, offset in offsets.items()}
    topic = application.topics.snapshots
    end_offsets = {(topic, number): offset for number, offset in offsets.items()}
    for records in reader.read_to_end(list(end_offsets), is_stopping, end_offsets):
        for number in {one.partition for one in records}:
            found[number].fill(_snapshots([one for one in records if one.partition == number]))
    restore_alerts(application, reader, found, is_stopping)
    facts = {
        "partitions": sorted(found),
        "states": sum(one.states.count() for one in found.values()),
        "seconds": round(time.monotonic() - began, 2),
    }
    log.info("restored", extra={"facts": facts})
    return list(found.values())


def restore_alerts(
    application: Application,
    reader: TopicReader,
    partitions: Mapping[int, AlertPartition],
    is_stopping: Callable[[], bool],
) -> None:
    """Replace the alerts of these partitions by those of the topics. Raises KafkaException."""
    for partition in partitions.values():
        partition.forget_alerts()
    for alerts in application.alerts:
        topic = application.topics.derived(alerts.name)
        for records in reader.read_to_end([(topic, number) for number in partitions], is_stopping):
            for record in records:
                if (found := _alerts(record)) is not None:
                    partitions[record.partition].restore(alerts.name, found)
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
