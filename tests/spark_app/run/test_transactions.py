"""Transactions in the job's topics: aborted events change nothing, and the markers at their ends stop nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from contracts.wire import decode_snapshot
from tests.everything import NOW, event_record
from tests.spark_app.batches import committed
from tests.spark_app.running import PATIENCE_S, until

if TYPE_CHECKING:
    from tests.spark_app.hosted import HostedJob
    from tests.spark_app.running import Topics

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class Transactions:
    """A producer of events, each transaction of which is open until it is committed or aborted."""

    def __init__(self, topics: Topics, name: str) -> None:
        settings = {"bootstrap.servers": topics.kafka, "transactional.id": f"{topics.names.prefix}{name}"}
        self._producer = Producer(settings)
        self._producer.init_transactions(PATIENCE_S)
        self._topic = topics.names.events

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, device: str, event: int, partition: int) -> None:
        """Send an event, and wait until it is in its partition."""
        record = event_record({"device_id": device, "event_id": str(event), "first_seen": NOW, "ts": NOW})
        self._producer.produce(self._topic, record.value, record.key, partition, timestamp=record.timestamp_ms)
        assert self._producer.flush(PATIENCE_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)


def versions(topics: Topics, least: int) -> dict[str, int]:
    """The largest version of each device, once there are `least` snapshots."""
    by_device: dict[str, int] = {}
    for message in topics.read(topics.names.snapshots, least):
        snapshot = decode_snapshot(message.value() or b"")
        by_device[snapshot.device_id] = max(snapshot.version, by_device.get(snapshot.device_id, 0))
    return by_device


def test_aborted_events_are_not_merged_and_a_marker_at_the_end_stops_nothing(
    topics: Topics, little_job: HostedJob
) -> None:
    kept, dropped = Transactions(topics, "kept"), Transactions(topics, "dropped")
    kept.begin()
    dropped.begin()
    for event in range(3):  # one after the other in the same partition
        kept.send("kept", event, 0)
        dropped.send("dropped", event, 0)
        dropped.send("kept", 100 + event, 0)
        dropped.send("dropped", 100 + event, 1)  # this partition has aborted records only
    dropped.abort()
    kept.commit()
    assert versions(topics, 3) == {"kept": 3}
    committed(little_job, 3)
    dropped.begin()
    dropped.send("dropped", 200, 0)
    dropped.abort()  # now partition 0 ends with an aborted record and its marker
    little_job.batches(2)
    assert little_job.stop() == 0
    little_job.start()
    until(lambda: len(little_job.lines("started")) == 2, "a second start")
    little_job.batches()
    kept.begin()
    kept.send("kept", 4, 0)
    kept.send("other", 1, 1)
    kept.commit()
    assert versions(topics, 5) == {"kept": 4, "other": 1}
    committed(little_job, 5)
    assert len(topics.read(topics.names.snapshots, 5)) == 5
    assert not little_job.lines("failed")
    assert not little_job.ended()
