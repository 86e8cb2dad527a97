"""Clocks that are ahead, of a device or of a broker, on the running job: they end no window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from contracts.records.record import Record, timestamp_ms
from contracts.wire import DeadLetter, decode_snapshot
from tests import everything
from tests.spark_app.batches import SHORT
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PATIENCE_S, Topics, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
AHEAD = everything.KEPT_FOR + timedelta(minutes=2)


@pytest.fixture
def job(spark: SparkSession, now_topics: Topics, tmp_path: Path) -> Iterator[HostedJob]:
    """Give the job on topics that the broker stamps, not yet started."""
    hosted = HostedJob(spark, now_topics.kafka, tmp_path, everything.application(everything.Little), SHORT)
    yield hosted
    hosted.stop()


def stamped_by_the_producer(topics: Topics) -> None:
    """Let records of the events topic have the stamps that they are sent with, as a broker with a wrong clock would."""
    wanted = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topics.names.events, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": topics.kafka})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)

    def is_in_force() -> bool:
        config = admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return all(config[name].value == value for name, value in wanted.items())

    until(is_in_force, "the broker has the settings of the topic")


def event(device: str, number: int, time: datetime, stamp: datetime) -> Record:
    """An event with this time, also of its window, and the time that its record has."""
    value = {"device_id": device, "event_id": str(number), "first_seen": time, "ts": time}
    return Record("", 0, 0, timestamp_ms(stamp), device.encode(), orjson.dumps(value))


def test_clocks_that_are_ahead_expire_no_window(job: HostedJob, now_topics: Topics) -> None:
    job.start()
    topics, now = now_topics, datetime.now(UTC)
    topics.send(topics.names.events, [event("honest", 1, now, now), event("device", 1, now + AHEAD, now)])
    topics.read(topics.names.dead_letters, 1)
    stamped_by_the_producer(topics)
    wrong = now + AHEAD
    rubbish = Record("", 0, 0, timestamp_ms(wrong), b"k", b"rubbish")
    topics.send(topics.names.events, [rubbish, event("broker", 1, wrong, wrong), event("honest", 2, now, wrong)])
    letters = topics.read(topics.names.dead_letters, 3)
    # The end of the batch before may not be reported yet, and a batch's late ones are those by the last but one.
    job.batches(3)
    topics.send(topics.names.events, [event("honest", 3, now, datetime.now(UTC))])
    snapshots = [decode_snapshot(message.value() or b"") for message in topics.read(topics.names.snapshots, 3)]
    assert [(snapshot.device_id, snapshot.version) for snapshot in snapshots] == [
        ("honest", number) for number in (1, 2, 3)
    ]
    dead_letters = [DeadLetter.model_validate_json(message.value() or b"") for message in letters]
    assert sorted(letter.reason for letter in dead_letters) == ["incredible_time", "incredible_time", "malformed"]
    assert any("(the job's clock)" in (letter.detail or "") for letter in dead_letters)
    assert sum(batch["late"] for batch in job.lines("batch")) == 0
