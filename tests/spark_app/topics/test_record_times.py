"""The times of the records around positions, on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from contracts.settings import KafkaSettings
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.values import LATEST, NewTopic, Partition
from spark_app.topics import record_times as module
from spark_app.topics.record_times import RecordTimes, record_times
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import until

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

TIMES = (1_000, 2_000, 2_000, 3_000)


def written(broker: EmbeddedBroker, topic: str) -> KafkaSettings:
    """Write records of these times to each of 2 partitions, the second one in a transaction, with its marker."""
    client = {"bootstrap.servers": broker.bootstrap}
    KafkaAdmin(client, "test").create([NewTopic(topic, 2, 1, {"retention.ms": "-1"})])
    transactional = create_producer(client | {"transactional.id": topic}, "test")
    transactional.init_transactions(30)
    transactional.begin_transaction()
    plain = create_producer(client, "test")
    for number, producer in enumerate((plain, transactional)):
        for time_ms in TIMES:
            producer.produce(topic, b"value", b"key", number, timestamp=time_ms)
    assert plain.flush(30) == 0
    transactional.commit_transaction(30)
    second = Partition(topic, 1)
    admin = KafkaAdmin(client, "test")
    until(lambda: admin.offsets({second: LATEST})[second] > len(TIMES), "the marker of the transaction")
    return KafkaSettings(kafka=broker.bootstrap)


@pytest.mark.kafka
def test_a_position_has_the_times_of_the_records_before_and_at_it(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic = f"{topics_prefix}times"
    settings = written(broker, topic)
    first, second = (topic, 0), (topic, 1)
    assert record_times(settings, {first: 1, second: 3}) == RecordTimes(
        {first: 1_000, second: 2_000}, {first: 2_000, second: 3_000}
    )
    assert record_times(settings, {first: 0, second: 5}) == RecordTimes({second: 3_000}, {first: 1_000})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        deleted.result(30)
    assert record_times(settings, {first: 3}) == RecordTimes({}, {first: 3_000})
    assert record_times(settings, {first: 9, second: 1}).last == {second: 1_000}


def test_without_a_broker_there_are_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    nowhere = KafkaSettings(kafka=f"127.0.0.1:{free_port_pair()}")
    assert record_times(nowhere, {("events", 0): 3}) == RecordTimes()
