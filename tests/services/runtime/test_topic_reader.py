"""Reading a topic from a time on, on a real broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from services.runtime.kafka.options import create_producer
from services.runtime.topic_reader import TopicReader
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_topic_is_read_from_its_first_record_of_a_time_to_its_end(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic, client = f"{topics_prefix}dead_letters", {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient({**client})
    admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "-1"})])[topic].result(DEADLINE_S)
    producer = create_producer(client, "test")
    for second in range(5):
        stamp = round((NOON + second * SECOND).timestamp() * 1000)
        producer.produce(topic, str(second), timestamp=stamp, partition=0)
    assert producer.flush(DEADLINE_S) == 0
    reader = TopicReader(client, "test")
    found = {
        second: [
            one.value for records in reader.read_to_end([(topic, 0)], since=NOON + second * SECOND) for one in records
        ]
        for second in (-1, 3, 5)
    }
    reader.stop()
    reader.close()
    assert found == {-1: [b"0", b"1", b"2", b"3", b"4"], 3: [b"3", b"4"], 5: []}
