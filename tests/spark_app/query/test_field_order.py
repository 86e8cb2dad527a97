"""The order in which a state declares its fields may change: the job finds each value in the checkpoint by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.wire import decode_snapshot
from tests.everything import NOW, event_record
from tests.spark_app.hosted import HostedJob
from tests.spark_app.pair import pair

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_app.running import Topics


@pytest.mark.spark
def test_fields_declared_in_another_order_keep_their_values(
    spark: SparkSession, pair_topics: Topics, tmp_path: Path
) -> None:
    first: dict[str, Any] = {"device_id": "d", "event_id": "1", "first_seen": NOW, "ts": NOW, "a": 1.0, "b": 2.0}

    def state_after(order: str, event: dict[str, Any], snapshots: int) -> bytes:
        job = HostedJob(spark, pair_topics.kafka, tmp_path, pair(order)).start()
        pair_topics.send(pair_topics.names.events, [event_record(event)])
        newest = pair_topics.read(pair_topics.names.snapshots, snapshots)[-1]
        job.batches(2)
        job.stop()
        assert decode_snapshot(newest.value() or b"").version == snapshots
        return orjson.dumps(orjson.loads(newest.value() or b"")["state"])

    assert state_after("ab", first, 1) == b'{"a":1.0,"b":2.0}'
    assert state_after("ba", {**first, "event_id": "2", "a": None, "b": None}, 2) == b'{"b":2.0,"a":1.0}'
