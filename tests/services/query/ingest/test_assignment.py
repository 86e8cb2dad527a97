"""The assigned partitions and their progress, without a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from contracts.model.named_state import NamedState
from services.query.errors import IngestionError
from services.query.ingest.assignment import PartitionAssignment
from services.query.ingest.freshness import FreshnessTracker
from services.query.ingest.ingestion import ReadProgress
from services.query.ingest.kafka_ingestion import KafkaIngestion
from services.query.ingest.tombstones import UNLIMITED
from services.query.store import StatePartition, Store
from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.clients import KafkaClients
from tests.deadline import DEADLINE_S
from tests.services.query.in_memory import ScratchStore
from tests.services.query.ingest.ingesting import RecordingListener

if TYPE_CHECKING:
    from pathlib import Path

PARTITION, OTHER = StatePartition("flights", 0), StatePartition("flights", 1)


@pytest.fixture
def assignment() -> PartitionAssignment:
    """Give an assignment whose reader knows an end offset."""
    stores: dict[str, Store] = {"flights": ScratchStore()}
    reader = Mock()
    reader.known_end.return_value = 9
    return PartitionAssignment(reader, {"flights": "topic"}, stores, FreshnessTracker(stores, UNLIMITED))


def test_progress_never_decreases(assignment: PartitionAssignment) -> None:
    """The client may report an end offset again that was passed, after a request to another broker."""
    assignment.add(PARTITION)
    assignment.reached(PARTITION, 7)
    assignment.reached(PARTITION, 5)
    assert assignment.progress == {PARTITION: ReadProgress(7, 9)}
    assignment.reached(PARTITION, 12)
    assert assignment.progress == {PARTITION: ReadProgress(12, 12)}


def test_an_unassigned_partition_has_no_progress(assignment: PartitionAssignment) -> None:
    assignment.add(PARTITION)
    assignment.remove(PARTITION)
    assignment.reached(PARTITION, 7)
    assignment.reached(OTHER, 7)
    assert assignment.progress == {}


def test_a_partition_that_is_being_cleared_has_no_progress(assignment: PartitionAssignment) -> None:
    assignment.add(PARTITION)
    assignment.reached(PARTITION, 7)
    assignment.restart(PARTITION, "a test", lambda: True)
    assignment.reached(PARTITION, 7)
    assert (assignment.progress, assignment.is_clearing) == ({}, True)
    while assignment.is_clearing:
        assignment.clear_some()
    assignment.reached(PARTITION, 1)
    assert assignment.progress == {PARTITION: ReadProgress(1, 9)}


def test_a_partition_is_not_cleared_before_readers_know(assignment: PartitionAssignment) -> None:
    """The event loop has ended, so that the instance cannot stop answering first."""
    assignment.add(PARTITION)
    assignment.restart(PARTITION, "a test", lambda: False)
    assert not assignment.is_clearing


def test_partitions_that_wait_to_be_cleared_are_cleared_by_a_later_process(tmp_path: Path) -> None:
    state = NamedState("flights", "topic", {}, 2)
    store = Store(tmp_path, state, "boot")
    store.apply([], {PARTITION.number: 10, OTHER.number: 10})
    stores = {"flights": store}
    assignment = PartitionAssignment(Mock(), {"flights": "topic"}, stores, FreshnessTracker(stores, UNLIMITED))
    for partition in (PARTITION, OTHER):
        assignment.add(partition)
        assignment.restart(partition, "a test", lambda: True)
    store.close()
    later = Store(tmp_path, state, "boot")
    found = [(later.is_clear_pending(one.number), later.position(one.number)) for one in (PARTITION, OTHER)]
    later.close()
    assert found == [(True, None)] * 2


async def test_a_fatal_client_error_stops_ingestion() -> None:
    stores: dict[str, Store] = {"flights": ScratchStore()}
    state = NamedState("flights", "topic", {}, 1)
    kafka = KafkaClients({"bootstrap.servers": "127.0.0.1:1"})
    ingestion = KafkaIngestion(kafka, Mock(), {"flights": state}, stores, RecordingListener())
    failed = ConsumerFailedError("_FENCED", "another one reads")
    ingestion._reader.read = Mock(side_effect=failed)  # type: ignore[method-assign]  # noqa: SLF001
    with pytest.raises(IngestionError, match="start the service again"):
        await asyncio.wait_for(ingestion.run(), DEADLINE_S)
