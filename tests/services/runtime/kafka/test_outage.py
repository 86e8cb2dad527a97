"""Producers and readers wait while the broker is away, and go on when it is back."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from services.runtime.errors import KafkaRequestError, TopicReadError
from services.runtime.kafka import reader as readers
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.producer import KafkaProducer
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.values import NEWEST, BoundedRange, EndlessRange, NewTopic, Output, Partition
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.kills_broker, pytest.mark.slow]
TOPIC = "events"
PLACE = Partition(TOPIC, 0)


async def test_what_was_begun_continues(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    admin = KafkaAdmin(client, "test")
    admin.create([NewTopic(TOPIC, 1, 1, {})])
    wait_until(lambda: TOPIC in admin.partition_counts(), "the topic", DEADLINE_S)
    reader, found = BlockingKafkaReader(client, "test", log=logging.getLogger("test")), list[bytes | None]()

    def follow() -> None:
        for records in reader.read({PLACE: EndlessRange(0)}, lambda: len(found) == 3):
            found.extend(record.value for record in records)

    following = threading.Thread(target=follow)
    following.start()
    producer = KafkaProducer(client, "test")
    async with asyncio.timeout(DEADLINE_S):
        assert await producer.send([Output(TOPIC, b"d", b"a")]) == [0]
        await asyncio.to_thread(wait_until, lambda: found == [b"a"], "the first record", DEADLINE_S)
        broker.kill()
        sent = [producer.send([Output(TOPIC, b"d", value)]) for value in (b"b", b"c")]
        monkeypatch.setattr(readers, "ANSWER_S", 0.2)
        with pytest.raises(KafkaRequestError):
            admin.partition_counts(within_s=0.2)
        with pytest.raises(TopicReadError):
            BlockingKafkaReader(client, "lookup").partitions([TOPIC])
        assert not any(one.done() for one in sent)
        await asyncio.to_thread(broker.start)
        assert [await one for one in sent] == [[1], [2]]
        await asyncio.to_thread(following.join)
        await producer.close()
    assert found == [b"a", b"b", b"c"]
    assert [one.value for batch in reader.read({PLACE: BoundedRange(1, 3)}) for one in batch] == [b"b", b"c"]
    monkeypatch.undo()
    assert admin.partition_counts()[TOPIC] == 1
    reader.close()


async def test_records_are_looked_up_after_the_broker_was_killed(broker: EmbeddedBroker) -> None:
    """A broker that was killed leads in another epoch, and refuses requests of a client that knows the former one."""
    client, place = {"bootstrap.servers": broker.bootstrap}, Partition("killed", 0)
    admin = KafkaAdmin(client, "test")
    admin.create([NewTopic(place.topic, 1, 1, {})])
    wait_until(lambda: place.topic in admin.partition_counts(), "the topic", DEADLINE_S)
    producer = KafkaProducer(client, "test")
    await producer.send([Output(place.topic, b"d", b"a")])
    before = admin.records({place: NEWEST})
    assert before[place].offset == 0

    def is_led() -> bool:
        try:
            return KafkaAdmin(client, "another").records({place: NEWEST}) == before
        except KafkaRequestError:
            return False

    for _ in range(2):
        broker.kill()
        broker.start()
        wait_until(is_led, "a leader", DEADLINE_S)
        assert admin.records({place: NEWEST}) == before
    await producer.close()
