"""What Kafka's client takes."""

from __future__ import annotations

from confluent_kafka import Producer

from contracts.application import LARGEST_RECORD

LONGEST_KEY = 4 * 256
"""A device_id has 256 characters at the most."""


def test_the_largest_record_that_may_be_declared_is_taken_by_a_client_as_it_comes() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    producer.produce("feedback", value=bytes(LARGEST_RECORD), key=bytes(LONGEST_KEY), headers={"trace": bytes(1024)})
    producer.purge()
    assert producer.flush(1) == 0
