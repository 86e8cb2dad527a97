"""The end offsets of partitions, while no broker responds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.ingest import end_offsets
from services.query.ingest.end_offsets import EndOffsetReader
from services.query.store import StatePartition
from services.runtime.kafka.admin import KafkaAdmin

if TYPE_CHECKING:
    import pytest


def test_without_a_broker_no_end_offset_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_offsets, "RESPONSE_TIMEOUT_S", 0.05)
    reader = EndOffsetReader(KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, "test"), {"flights": "topic"})
    assert reader.read([StatePartition("flights", 0)]) == {}
    assert reader.read([]) == {}
