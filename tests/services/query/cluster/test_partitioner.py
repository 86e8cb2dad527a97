"""The partition of a key: as computed here, and as producers choose it on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.wire.partition import partition
from services.runtime.kafka.options import create_producer
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from tests.services.tools.broker.embedded import EmbeddedBroker

PARTITIONS = 13
keys = st.lists(st.text(max_size=40) | st.binary(max_size=40), min_size=1, max_size=300)


class Partitions:
    """A topic, and the partitions that a producer chooses."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(DEADLINE_S)
        self._producer = create_producer({"bootstrap.servers": bootstrap, "linger.ms": 1}, "test")

    def of(self, some: list[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}

        def written(error: KafkaError | None, message: Message) -> None:
            assert error is None
            number = message.partition()
            assert number is not None
            found[message.key() or b""] = number

        for key in some:
            self._producer.produce(self._topic, b"", key, on_delivery=written)
        assert self._producer.flush(DEADLINE_S) == 0
        return found


@pytest.fixture
def partitions(broker: EmbeddedBroker, topics_prefix: str) -> Partitions:
    return Partitions(broker.bootstrap, f"{topics_prefix}keys")


@pytest.mark.kafka
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys)
def test_the_partition_of_a_key_is_that_of_producers(partitions: Partitions, some: list[str | bytes]) -> None:
    encoded = [key.encode() if isinstance(key, str) else key for key in some]
    assert partitions.of(encoded) == {key: partition(key, PARTITIONS) for key in encoded}


@pytest.mark.kafka
def test_many_keys_of_all_lengths_have_the_partition_of_producers(partitions: Partitions) -> None:
    many = [f"{number:0{number % 23}d}/ü€𝄞"[: number % 29 + 1].encode() for number in range(20_000)]
    found = partitions.of(many)
    assert found == {key: partition(key, PARTITIONS) for key in many}
    assert set(found.values()) == set(range(PARTITIONS))
