"""`stateloop bootstrap` of a suite that is killed, and repeated after the topic has deleted rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import patch

import orjson
import pytest

from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.values import Partition
from spark_app.lifecycle.rebuild import Rebuild
from spark_app.settings import JobSettings
from spark_app.topics.times import RETENTION, TopicTimes
from tests.spark_app.hosted import CRASHED, Crash, done
from tests.spark_app.running import Topics
from tests.suites import three

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

START = datetime(2013, 1, 1, tzinfo=UTC)


def trip(device: int, minute: int) -> bytes:
    fields = {"device_id": f"d{device}", "event_id": str(minute), "first_seen": START, "cents": 1}
    return orjson.dumps(fields | {"ts": START + timedelta(minutes=minute)})


def test_a_suite_continues_with_the_states_that_are_built(
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    for application in three(topics_prefix):
        Topics(broker.bootstrap, application)
    history = tmp_path / "trips.jsonl"
    history.write_bytes(b"\n".join(trip(device, minute) for device in range(10) for minute in range(5)))
    environment = {
        "SUITE_PREFIX": topics_prefix,
        "STATELOOP_APPLICATION": "tests.suites:suite",
        "STATELOOP_KAFKA": broker.bootstrap,
        "STATELOOP_CHECKPOINT": str(tmp_path / "checkpoint"),
    }
    events = three(topics_prefix).totals.topics.events
    times = TopicTimes(JobSettings(application="", kafka=broker.bootstrap), events)
    settings, activate, build = times.current(), Rebuild.activate, Rebuild.build
    activated: list[object] = []
    retentions: list[str] = []

    def crash_at_the_second(rebuild: Rebuild, generation: str, now_ms: int) -> object:
        if activated:
            raise Crash
        activated.append(generation)
        return activate(rebuild, generation, now_ms)

    def note_retention(rebuild: Rebuild, *arguments: object) -> None:
        retentions.append(times.current()[RETENTION])
        build(rebuild, *arguments)  # type: ignore[arg-type]

    with patch.object(Rebuild, "activate", crash_at_the_second):
        done(spark, environment, "bootstrap", str(history), code=CRASHED)
    assert times.current() == settings
    KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test").delete_records({Partition(events, 0): 5})
    with patch.object(Rebuild, "build", note_retention):
        printed = done(spark, environment, "bootstrap", str(history))
    assert "totals has its state already" in printed
    assert retentions == ["-1", "-1"]
    assert times.current() == settings
    other = environment | {"STATELOOP_CHECKPOINT": str(tmp_path / "other")}
    refused = done(spark, other, "bootstrap", str(history), code=1)
    assert f"{events} has deleted records since" in refused
    assert times.current() == settings
