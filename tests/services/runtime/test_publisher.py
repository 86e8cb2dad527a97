"""The publisher waits for room in Kafka's client, in the order of the calls."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from contracts.model.application import LARGEST_RECORD
from contracts.types.key import LARGEST_KEY
from services.runtime.publisher import KafkaPublisher
from tests.services.enrichment.in_memory import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Full:
    """A client that has room for so many records, and takes them in no time."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.room = 0
        self.refusals = 0
        self.taken: list[bytes] = []

    def produce(self, _: str, *, value: bytes, on_delivery: Callable[[None, None], None], **__: Any) -> None:
        if not self.room:
            self.refusals += 1
            raise BufferError
        self.room -= 1
        self.taken.append(value)
        on_delivery(None, None)

    def poll(self, _: float) -> None:
        time.sleep(0.001)

    def flush(self, _: float) -> int:
        return 0


def test_the_largest_record_that_may_be_declared_is_taken_by_a_client_as_it_comes() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    producer.produce("feedback", value=bytes(LARGEST_RECORD), key=bytes(LARGEST_KEY), headers={"trace": bytes(1024)})
    producer.purge()
    assert producer.flush(1) == 0


async def test_a_record_that_waits_for_room_stays_before_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Full()
    monkeypatch.setattr("services.runtime.publisher.create_producer", lambda *_: client)
    publisher = KafkaPublisher({}, "test", asyncio.get_running_loop())
    earlier = asyncio.create_task(publisher.publish("feedback", b"d", b"earlier"))
    await until(lambda: client.refusals > 0)
    client.room = 2
    await publisher.publish("feedback", b"d", b"later")
    await earlier
    await publisher.close()
    assert client.taken == [b"earlier", b"later"]
