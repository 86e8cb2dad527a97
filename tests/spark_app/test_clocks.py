"""A broker's clock that is ahead, on the running job: it ends no window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from contracts.records.record import Record
from contracts.wire import DeadLetter, decode_snapshot
from tests import everything
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PATIENCE_S, Topics, until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
AHEAD = everything.KEPT_FOR + timedelta(minutes=2)


def stamped_by_the_producer(topics: Topics) -> None:
    """Let records of the events topic have the stamps that they are sent with, as a broker with a wrong clock would."""
    wanted = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topics.names.events, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": topics.kafka})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)

    def is_in_force() -> bool:
        found = admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return all(found[name].value == value for name, value in wanted.items())

    until(is_in_force, "the broker has the settings of the topic")


def event(device: str, number: int, time: datetime, stamp: datetime) -> Record:
    value = {"device_id": device, "event_id": str(number), "first_seen": time, "ts": time}
    return Record("", 0, 0, stamp, device.encode(), orjson.dumps(value))


def test_a_brokers_clock_that_is_ahead_expires_no_window(
    spark: SparkSession, now_topics: Topics, tmp_path: Path
) -> None:
    topics = now_topics
    job = HostedJob(spark, topics.kafka, tmp_path, everything.application(everything.Little)).start()
    try:
        now = datetime.now(UTC)
        topics.send(topics.names.events, [event("honest", 1, now, now)])
        topics.read(topics.names.snapshots, 1)
        stamped_by_the_producer(topics)
        now = datetime.now(UTC)
        wrong = now + AHEAD
        rubbish = Record("", 0, 0, wrong, b"k", b"rubbish")
        topics.send(topics.names.events, [rubbish, event("ahead", 1, wrong, wrong), event("right", 1, now, wrong)])
        letters = topics.read(topics.names.dead_letters, 2)
        topics.read(topics.names.snapshots, 2)
        job.batches(3)
        later = datetime.now(UTC)
        topics.send(topics.names.events, [event("right", 2, now, later)])
        found = [decode_snapshot(one.value() or b"") for one in topics.read(topics.names.snapshots, 3)]
        assert [(one.device_id, one.version) for one in found if one.device_id == "right"] == [
            ("right", 1),
            ("right", 2),
        ]
        dead_letters = {
            one.reason: one for one in (DeadLetter.model_validate_json(one.value() or b"") for one in letters)
        }
        assert set(dead_letters) == {"malformed", "incredible_time"}
        assert "(the job's clock)" in (dead_letters["incredible_time"].detail or "")
        assert sum(batch["late"] for batch in job.batches(1)) == 0
    finally:
        job.stop()
