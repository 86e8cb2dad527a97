"""The example of docs/how-to/topics.md, run against a real broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from examples.scooters.application import Ping
from tests.deadline import DEADLINE_S
from tests.docs.rides import follow, ping
from tests.services.query.ingest.ingesting import COMPACTED, Topic, compacted

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

RIDE = datetime(2026, 5, 1, 8, tzinfo=UTC)
PARTITIONS = 4


@pytest.fixture
def topic(broker: EmbeddedBroker, topics_prefix: str) -> str:
    """Give an empty topic."""
    name = f"{topics_prefix}topic"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(DEADLINE_S)
    return name


def test_ping_sends_an_event_of_the_application(broker: EmbeddedBroker, topic: str) -> None:
    ping(broker.bootstrap, "s7", RIDE, topic=topic, speed=12.5, lat=52.5, lon=13.4)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(DEADLINE_S)
    consumer.close()
    assert message is not None
    event = Ping.model_validate_json(message.value() or b"")
    assert (event.device_id, event.first_seen, event.speed, event.lat) == ("s7", RIDE, 12.5, 52.5)
    assert message.partition() == partition(b"s7", PARTITIONS), "where the job and the query service look for it"


def test_follow_yields_no_older_or_repeated_snapshot(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    later = RIDE + timedelta(hours=2)
    first = ((RIDE, 1, 1), (RIDE, 1, 2), (RIDE, 1, 1), (RIDE, 1, 2), (RIDE, 1, 3), (later, 1, 1), (RIDE, 2, 4))
    for window, epoch, version in (*first, (later, 1, 2), (later, 2, 1), (later, 1, 3), (later, 2, 2)):
        snapshot = Snapshot(device_id="s7", first_seen=window, epoch=epoch, version=version, as_of=window, state={})
        producer.produce(topic, snapshot.encode(), window_key("s7", window), partition(b"s7", PARTITIONS))
    assert producer.flush(30) == 0
    followed = follow(broker.bootstrap, topic, topic=topic)
    orders = [(one["epoch"], one["version"]) for one in (next(followed) for _ in range(7))]
    assert orders == [(1, 1), (1, 2), (1, 3), (1, 1), (1, 2), (2, 1), (2, 2)]


async def test_a_consumer_of_a_compacted_topic_has_the_newer_window(broker: EmbeddedBroker, topics_prefix: str) -> None:
    table = Topic(broker.bootstrap, f"{topics_prefix}compacted", COMPACTED, 1)
    for window, version in ((RIDE + timedelta(hours=2), 1), (RIDE, 1), (RIDE, 2)):  # the older window is written last
        snapshot = Snapshot(device_id="s7", first_seen=window, version=version, as_of=window, state={}, enrichments={})
        table.write((window_key("s7", window), snapshot.encode()))
    await compacted(table, 2)
    followed = next(follow(broker.bootstrap, table.name, topic=table.name))
    assert (followed["first_seen"], followed["version"]) == ("2026-05-01T10:00:00Z", 1)
