"""The order in which a state declares its fields may change: the job finds each value in the checkpoint by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.wire import decode_snapshot
from tests.everything import NOW, event_record
from tests.spark_app.pair import pair
from tests.spark_app.running import Job, Topics

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker


@pytest.mark.spark
@pytest.mark.kafka
def test_fields_declared_in_another_order_keep_their_values(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIR_PREFIX", topics_prefix)
    topics = Topics(broker.bootstrap, pair("ab"))
    first: dict[str, Any] = {"device_id": "d", "event_id": "1", "first_seen": NOW, "ts": NOW, "a": 1.0, "b": 2.0}

    def state_after(order: str, event: dict[str, Any], snapshots: int) -> bytes:
        job = Job(topics.kafka, tmp_path, "tests.spark_app.pair:app", {"PAIR_ORDER": order}).start()
        topics.send(topics.names.events, [event_record(event)])
        newest = topics.read(topics.names.snapshots, snapshots)[-1]
        job.batches(2)
        job.stop()
        assert decode_snapshot(newest.value() or b"").version == snapshots
        return orjson.dumps(orjson.loads(newest.value() or b"")["state"])

    assert state_after("ab", first, 1) == b'{"a":1.0,"b":2.0}'
    assert state_after("ba", {**first, "event_id": "2", "a": None, "b": None}, 2) == b'{"b":2.0,"a":1.0}'
