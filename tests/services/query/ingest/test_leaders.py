"""The end offsets of partitions of which one has lost its leader, on a cluster of two brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from services.query.ingest import KafkaIngestion
from services.query.ingest.ingestion import ChangeListeners
from services.query.store import StatePartition
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.clients import KafkaClients
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.in_memory import ScratchStore, a_state
from tests.services.tools.broker.embedded import EmbeddedBroker, free_port_pair
from tests.services.tools.broker.joined import NODE, JoinedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC = "flights"
SURVIVING, LOST = StatePartition("flights", 0), StatePartition("flights", 1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    started = EmbeddedBroker(tmp_path, free_port_pair())
    started.start()
    yield started
    started.stop()


@pytest.mark.kafka
async def test_a_partition_without_a_leader_leaves_the_end_offsets_of_the_others_known(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    (tmp_path / "second").mkdir()
    with JoinedBroker(tmp_path / "data", broker.bootstrap, tmp_path / "second") as second:
        admin = AdminClient({**client})
        topic = NewTopic(TOPIC, num_partitions=2, replica_assignment=[[1], [NODE]])
        admin.create_topics([topic])[TOPIC].result(DEADLINE_S)
        states = {"flights": replace(a_state(), topic=TOPIC, partitions=2)}
        stores = {name: ScratchStore(state) for name, state in states.items()}
        ingestion = KafkaIngestion(KafkaClients(client), KafkaAdmin(client, "test"), states, stores, ChangeListeners())
        wait_until(lambda: _leader(admin, 1) == NODE, "the partition has a leader", DEADLINE_S)
        assert await ingestion.end_offsets([SURVIVING, LOST]) == {SURVIVING: 0, LOST: 0}
        second.kill()
        wait_until(lambda: _leader(admin, 1) < 0, "the partition has no leader", DEADLINE_S)
        assert await ingestion.end_offsets([SURVIVING, LOST]) == {SURVIVING: 0}


def _leader(admin: AdminClient, number: int) -> int:
    """Return the number of the broker that leads a partition; a negative one without a leader, or without the topic."""
    topic = admin.list_topics(timeout=DEADLINE_S).topics.get(TOPIC)
    return -1 if topic is None or number not in topic.partitions else topic.partitions[number].leader
