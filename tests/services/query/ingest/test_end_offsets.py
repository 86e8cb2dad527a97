"""The end offsets of partitions, while no broker responds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import Mock

from services.query.ingest import KafkaIngestion, kafka_ingestion
from services.query.ingest.ingestion import ChangeListeners
from services.query.store import StatePartition
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.clients import KafkaClients
from tests.services.query.in_memory import ScratchStore, a_state, until

if TYPE_CHECKING:
    import pytest


async def test_without_a_broker_no_end_offset_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_ingestion, "RESPONSE_TIMEOUT_S", 0.05)
    client, states = {"bootstrap.servers": "127.0.0.1:1"}, {"flights": a_state()}
    stores = {name: ScratchStore(state) for name, state in states.items()}
    ingestion = KafkaIngestion(KafkaClients(client), KafkaAdmin(client, "test"), states, stores, ChangeListeners())
    assert await ingestion.end_offsets([StatePartition("flights", 0)]) == {}
    assert await ingestion.end_offsets([]) == {}
    assert await ingestion.growing(["flights"]) == {"flights"}, "what is unknown may be"


async def test_states_are_growing_while_their_topics_have_other_numbers_of_partitions() -> None:
    states = {name: replace(a_state(), name=name, topic=name) for name in ("flights", "cars", "trips")}
    stores = {name: ScratchStore(state) for name, state in states.items()}
    admin = Mock()
    counts = {name: state.partitions for name, state in states.items()}
    admin.partition_counts.return_value = counts | {"cars": 99, "trips": 99}
    ingestion = KafkaIngestion(
        KafkaClients({"bootstrap.servers": "127.0.0.1:1"}), admin, states, stores, ChangeListeners()
    )
    assert await ingestion.growing(["flights", "cars"]) == {"cars"}


async def test_a_cluster_that_leaves_after_ingestion_has_ended_receives_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When a task of the service fails, all are cancelled at once, and the cluster ends last."""
    monkeypatch.setattr(kafka_ingestion, "RESPONSE_TIMEOUT_S", 0.05)
    client, states = {"bootstrap.servers": "127.0.0.1:1"}, {"flights": a_state()}
    stores = {name: ScratchStore(state) for name, state in states.items()}
    ingestion = KafkaIngestion(KafkaClients(client), KafkaAdmin(client, "test"), states, stores, ChangeListeners())
    running = asyncio.create_task(ingestion.run())
    await until(lambda: ingestion.counts.rounds > 0)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert await ingestion.end_offsets([StatePartition("flights", 0)]) == {}
