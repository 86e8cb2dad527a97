"""A client that fails while it is used, and a real broker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from services.query.ingest.kafka_ingestion import KafkaIngestion
from services.query.store import StatePartition
from services.query.store.store import Store
from services.runtime.kafka.clients import KafkaClients
from tests.services.query.ingest.ingesting import RecordingListener, Topic, until, value

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.model.named_state import NamedState

pytestmark = pytest.mark.kafka


class Failing:
    """A consumer of which one method fails at every third call; the records that it read are lost then."""

    def __init__(self, consumer: Consumer, method: str) -> None:
        self._consumer = consumer
        self._method = method
        self.calls = self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return self._call if name == self._method else getattr(self._consumer, name)

    def _call(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        fails = self.calls % 3 == 1
        reads = self._method in ("consume", "poll")
        result = getattr(self._consumer, self._method)(*given, **named) if reads or not fails else None
        if fails:
            self.failures += 1
            raise KafkaException(KafkaError(KafkaError._STATE))  # noqa: SLF001 (the client's public name)
        return result


@pytest.mark.parametrize("method", ["consume", "poll", "get_watermark_offsets", "incremental_assign", "assign"])
async def test_no_record_is_skipped_when_the_client_fails(
    topic: Topic, state: NamedState, tmp_path: Path, method: str
) -> None:
    other = Topic(topic.client["bootstrap.servers"], f"{topic.name}-of-others")
    states = {"flights": state, "others": replace(state, name="others", topic=other.name)}
    for number in range(200):
        for one in (topic, other):
            one.write((f"k{number}", value(1)), partition=number % 2)
    stores = {name: Store(tmp_path / name, one, "boot") for name, one in states.items()}
    kafka = KafkaClients(topic.client)
    ingestion = KafkaIngestion(kafka, kafka.admin("test"), states, stores, RecordingListener())
    reader: Any = ingestion._reader  # noqa: SLF001
    failing = reader._consumer = Failing(reader._consumer, method)  # noqa: SLF001
    if method == "assign":  # it is called after another method has failed
        failing = reader._consumer = Failing(failing, "consume")  # type: ignore[arg-type]  # noqa: SLF001
    running = asyncio.create_task(ingestion.run())
    parts = [StatePartition(name, partition) for name in states for partition in (0, 1)]
    for part in parts:
        ingestion.assign(part)
    await until(lambda: all((progress := ingestion.progress(part)) and progress.position == 100 for part in parts))
    for store in stores.values():
        assert store.key_count() == 200
    assert failing.failures > 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    for store in stores.values():
        store.close()
