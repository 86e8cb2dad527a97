"""The plan of a rebuild, on real topics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from spark_app.errors import NoGenerationError
from spark_app.rebuild import CLOCKS, Rebuild
from spark_app.settings import JobSettings
from tests import everything
from tests.everything import event_record

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_app.running import Topics

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture
def rebuild(spark: SparkSession, now_topics: Topics, tmp_path: Path) -> Rebuild:
    """Give the rebuild of an application that has no checkpoint, and whose topics the broker stamps."""
    settings = JobSettings(kafka=now_topics.kafka, application="", checkpoint=str(tmp_path / "checkpoint"))
    return Rebuild(spark, everything.application(), settings)


def events(count: int, time: datetime) -> list[dict[str, object]]:
    """Events of as many devices, at one time."""
    return [{"device_id": f"d{n}", "event_id": "1", "first_seen": time, "ts": time} for n in range(count)]


def milliseconds(time: datetime) -> int:
    """Since 1970, as the clock of a rebuild gives them."""
    return round(time.timestamp() * 1000)


def test_a_plan_counts_the_records_that_a_live_window_can_have(rebuild: Rebuild, now_topics: Topics) -> None:
    now = datetime.now(UTC)
    now_topics.send(now_topics.names.events, map(event_record, events(10, now)))
    plan = rebuild.plan(milliseconds(now))
    assert (plan.differences, plan.records, plan.missing) == (["there is no checkpoint"], 10, [])
    assert not plan.is_begun
    app = everything.application()
    later = now + app.kept_for + app.skew + CLOCKS + timedelta(minutes=1)
    assert rebuild.plan(milliseconds(later)).records == 0


def test_a_plan_names_the_deleted_records(rebuild: Rebuild, now_topics: Topics) -> None:
    now = datetime.now(UTC)
    now_topics.send(now_topics.names.events, map(event_record, events(20, now)))
    admin = AdminClient({"bootstrap.servers": now_topics.kafka})
    (deleted,) = admin.delete_records([TopicPartition(now_topics.names.events, 0, 1)]).values()
    deleted.result(30)
    (missing,) = rebuild.plan(milliseconds(now)).missing
    assert missing == f"partition 0 of {now_topics.names.events} begins at offset 1: records before it are gone"


def test_a_checkpoint_that_was_never_rebuilt_has_no_way_back(rebuild: Rebuild) -> None:
    with pytest.raises(NoGenerationError):
        rebuild.roll_back(milliseconds(datetime.now(UTC)))
