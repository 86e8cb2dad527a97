"""The example of docs/how-to/history.md, run against a real broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contracts import Topics
from contracts.records.decode import Decoder
from contracts.records.record import Reason, Record, RecordError
from examples.scooters.application import Scooter, app
from services.runtime.kafka.options import record_of
from tests.docs.replay_events import replay

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

RIDE = datetime(2020, 5, 1, 8, tzinfo=UTC)


def event(minute: int) -> dict[str, Any]:
    ts = RIDE + timedelta(minutes=minute)
    return {"device_id": "s7", "event_id": str(minute), "first_seen": RIDE.isoformat(), "ts": ts.isoformat()}


@pytest.fixture
def topic(broker: EmbeddedBroker, topics_prefix: str) -> str:
    """Give the empty events topic of an application, with the settings of a replay."""
    (declared, *_) = Topics(prefix=topics_prefix, replay=True, partitions=1).catalogue(Scooter)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(declared.name, 1, 1, config=declared.config())])[declared.name].result(30)
    return declared.name


def records(kafka: str, topic: str, count: int) -> list[Record]:
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    messages = consumer.consume(count, 60)
    consumer.close()
    return [record_of(message) for message in messages]


def test_events_of_the_past_are_accepted_and_in_the_order_of_time(broker: EmbeddedBroker, topic: str) -> None:
    replay(broker.bootstrap, topic, [event(2), event(1)])
    found = records(broker.bootstrap, topic, 2)
    assert [record.timestamp for record in found] == [RIDE + timedelta(minutes=1), RIDE + timedelta(minutes=2)]
    assert [delta.device_id for record in found for delta in Decoder(app).event(record)] == ["s7", "s7"]


def test_without_the_events_time_they_are_late(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, app.event.model_validate(event(1)).model_dump_json(), "s7")
    assert producer.flush(30) == 0
    (found,) = records(broker.bootstrap, topic, 1)
    with pytest.raises(RecordError) as refused:
        Decoder(app).event(found)
    assert refused.value.reason is Reason.LATE
    assert "in a replay, give each record its event's time" in (refused.value.detail or "")
