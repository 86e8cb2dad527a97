from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from contracts.model.named_state import NamedState
from services.query.errors import PartitionsChangedError
from services.query.ingest import partition_counts
from services.query.ingest.partition_counts import watch_partition_counts
from services.runtime.kafka.admin import KafkaAdmin
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker


@pytest.mark.kafka
async def test_added_partitions_are_noticed(
    broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_counts, "CHECK_INTERVAL_S", 0.05)
    looked, count = asyncio.Event(), partition_counts._read_count  # noqa: SLF001
    loop = asyncio.get_running_loop()

    def noted(*arguments: object) -> int:
        found = count(*arguments)  # type: ignore[arg-type]
        loop.call_soon_threadsafe(looked.set)
        return found

    monkeypatch.setattr(partition_counts, "_read_count", noted)
    topic = f"{topics_prefix}cars"
    layout = f"{topics_prefix}layout"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for made in admin.create_topics([NewTopic(topic, 6, 1), NewTopic(layout, 4, 1)]).values():
        made.result(DEADLINE_S)
    states = [
        NamedState("cars", topic, {}, 4, layout_topic=layout),
        NamedState("none", f"{topics_prefix}none", {}, 4),
    ]
    watched = KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test")
    watching = asyncio.create_task(watch_partition_counts(states, watched))
    for _ in range(4):
        looked.clear()
        await asyncio.wait_for(looked.wait(), DEADLINE_S)
    assert not watching.done()
    await asyncio.to_thread(admin.create_partitions([NewPartitions(layout, 6)])[layout].result, DEADLINE_S)
    with pytest.raises(PartitionsChangedError, match="has 6 partitions, and had 4: start the service again"):
        await asyncio.wait_for(watching, DEADLINE_S)


async def test_an_unreachable_broker_does_not_stop_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_counts, "RESPONSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(partition_counts, "CHECK_INTERVAL_S", 0.01)
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, "test")
    watching = asyncio.create_task(watch_partition_counts([NamedState("cars", "cars", {}, 4)], admin))
    done, _ = await asyncio.wait([watching], timeout=0.5)
    assert not done
    watching.cancel()
    await asyncio.wait([watching])
