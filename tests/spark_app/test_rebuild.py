"""What a rebuild plans, on real topics."""

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

NOW = datetime.now(UTC)
NOW_MS = round(NOW.timestamp() * 1000)


@pytest.fixture
def rebuild(spark: SparkSession, now_topics: Topics, tmp_path: Path) -> Rebuild:
    """Give the rebuild of an application that has no checkpoint, and whose topics the broker stamps."""
    settings = JobSettings(kafka=now_topics.kafka, application="", checkpoint=str(tmp_path / "checkpoint"))
    return Rebuild(spark, everything.application(), settings)


def events(count: int) -> list[dict[str, object]]:
    """Events of as many devices."""
    return [{"device_id": f"d{n}", "event_id": "1", "first_seen": NOW, "ts": NOW} for n in range(count)]


def test_a_plan_counts_the_records_that_a_live_window_can_have(rebuild: Rebuild, now_topics: Topics) -> None:
    now_topics.send(now_topics.names.events, map(event_record, events(10)))
    plan = rebuild.plan(NOW_MS)
    assert (plan.differences, plan.records, plan.missing) == (["there is no checkpoint"], 10, [])
    assert not plan.is_begun
    app = everything.application()
    later = NOW + app.kept_for + app.skew + CLOCKS + timedelta(minutes=1)
    assert rebuild.plan(round(later.timestamp() * 1000)).records == 0


def test_a_plan_names_what_the_topics_do_not_hold_any_more(rebuild: Rebuild, now_topics: Topics) -> None:
    now_topics.send(now_topics.names.events, map(event_record, events(20)))
    admin = AdminClient({"bootstrap.servers": now_topics.kafka})
    (deleted,) = admin.delete_records([TopicPartition(now_topics.names.events, 0, 1)]).values()
    deleted.result(30)
    (missing,) = rebuild.plan(NOW_MS).missing
    assert missing == f"partition 0 of {now_topics.names.events} begins at offset 1: records before it are gone"


def test_a_checkpoint_that_was_never_rebuilt_has_no_way_back(rebuild: Rebuild) -> None:
    with pytest.raises(NoGenerationError):
        rebuild.roll_back(NOW_MS)
