from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.tools.broker.embedded import EmbeddedBroker, free_port_pair, run_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.kafka

RECORDS = [(b"N%d" % number, b'{"n": %d}' % number) for number in range(500)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    embedded = EmbeddedBroker(tmp_path_factory.mktemp("a folder of its own"), free_port_pair())
    embedded.start()
    yield embedded
    embedded.stop()


def make_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)


def produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for key, value in RECORDS:
        producer.produce(topic, value, key)
    assert producer.flush(DEADLINE_S) == 0


def read(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    records: list[tuple[bytes | None, bytes | None]] = []

    def all_read() -> bool:
        messages = consumer.consume(len(RECORDS) - len(records), 0.2)
        records.extend((message.key(), message.value()) for message in messages if message.error() is None)
        return len(records) == len(RECORDS)

    wait_until(all_read, f"{len(RECORDS)} records of {topic}", DEADLINE_S)
    consumer.close()
    return records


def test_a_start_writes_a_few_lines_with_both_ports(own: EmbeddedBroker) -> None:
    port = int(own.bootstrap.rpartition(":")[2])
    wait_until(
        lambda: "Kafka Server started" in own.log.read_text(encoding="utf-8"), "the line of a ready broker", DEADLINE_S
    )
    lines = own.log.read_text(encoding="utf-8").splitlines()
    assert sum(str(port) in line and str(port + 1) in line for line in lines) == 1
    assert [line for line in lines if " INFO " in line and "Server started" not in line and "signal" not in line] == []


def test_a_second_broker_on_the_port_is_refused_in_one_line(own: EmbeddedBroker, tmp_path: Path) -> None:
    port = own.bootstrap.rpartition(":")[2]
    done = run_broker(STATELOOP_BROKER_DATA=str(tmp_path), STATELOOP_BROKER_PORT=port)
    assert done.returncode == 1
    assert done.stderr.startswith(f"stateloop broker: Port {port} is busy: ")
    assert done.stderr.count("\n") == 1


def test_a_second_broker_on_the_data_is_refused_in_one_line(own: EmbeddedBroker) -> None:
    done = run_broker(STATELOOP_BROKER_DATA=str(own.log.with_name("data")), STATELOOP_BROKER_PORT=str(free_port_pair()))
    assert done.returncode == 1
    assert "A broker already runs on the data" in done.stderr
    assert done.stderr.count("\n") == 1


def test_records_survive_kill_9_and_sigterm_stops_it_cleanly(own: EmbeddedBroker, topics_prefix: str) -> None:
    topic = f"{topics_prefix}events"
    make_topic(own.bootstrap, topic)
    produce(own.bootstrap, topic)
    assert read(own.bootstrap, topic) == RECORDS
    own.kill()
    own.start()
    assert read(own.bootstrap, topic) == RECORDS
    assert own.stop() == 143  # the exit code of a JVM that ran its shutdown hooks on SIGTERM
    assert "Terminating process due to signal SIGTERM" in own.log.read_text(encoding="utf-8")
    assert (own.log.with_name("data") / "log" / ".kafka_cleanshutdown").exists()
    own.start()
    assert read(own.bootstrap, topic) == RECORDS


def test_a_topic_is_not_made_by_a_typing_error(broker: EmbeddedBroker, topics_prefix: str) -> None:
    delivered: list[bool] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "topic.metadata.propagation.max.ms": 100})
    producer.produce(f"{topics_prefix}evnets", b"{}", on_delivery=lambda error, _: delivered.append(error is None))
    assert producer.flush(DEADLINE_S) == 0
    assert delivered == [False]


def test_an_admin_sees_one_broker_on_this_machine(broker: EmbeddedBroker) -> None:
    try:
        brokers = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=DEADLINE_S).brokers
    except KafkaException as error:
        pytest.fail(str(error))
    assert [f"{node.host}:{node.port}" for node in brokers.values()] == [broker.bootstrap]
