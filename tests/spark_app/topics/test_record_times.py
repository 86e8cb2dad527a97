"""The times of the records around positions, on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from contracts.records.record import Record
from contracts.settings import KafkaSettings
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.values import LATEST, BoundedRange, NewTopic, Partition
from spark_app.topics import record_times as module
from spark_app.topics.record_times import PATIENCE_S, RecordTimes, record_times
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Callable

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


class SlowReader:
    """A reader of a topic with two records in each partition, whose answers take a time of a virtual clock."""

    def __init__(self, answer_s: dict[int, float]) -> None:
        self.now = 0.0
        self._answer_s = answer_s

    def __call__(self, *_: object) -> SlowReader:
        return self

    def monotonic(self) -> float:
        return self.now

    def bounds(self, partitions: list[Partition], _: float) -> dict[Partition, BoundedRange]:
        return {partition: BoundedRange(0, 2) for partition in partitions}

    def at(self, partition: Partition, offsets: range, is_wanted: Callable[[], bool]) -> list[Record]:
        answered_at = self.now + self._answer_s.get(partition.number, 1.0)
        while self.now < answered_at:
            if not is_wanted():
                return []
            self.now += 0.5
        return [Record(*partition, offset, 1_000 + offset, None, None) for offset in offsets]

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("slow", "known", "ends_at"),
    [
        ({}, range(100), 100),  # ten times as long as one lookup may take
        ({7: 9.0}, range(100), 108),
        ({7: 1e9, 8: 1e9}, range(7), 7 + PATIENCE_S),  # one wait for all that do not answer
    ],
)
def test_each_partition_has_time_to_answer(
    monkeypatch: pytest.MonkeyPatch, slow: dict[int, float], known: range, ends_at: float
) -> None:
    reader = SlowReader(slow)
    monkeypatch.setattr(module, "BlockingKafkaReader", reader)
    monkeypatch.setattr(module, "time", reader)
    times = record_times(KafkaSettings(), {("events", number): 1 for number in range(100)})
    partitions = [("events", number) for number in known]
    assert times == RecordTimes(dict.fromkeys(partitions, 1_000), dict.fromkeys(partitions, 1_001))
    assert reader.now == ends_at
