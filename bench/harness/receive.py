"""Receives the records of a topic, such as snapshots, and notes when."""

import gc
import time
from multiprocessing.synchronize import Event as Flag

from confluent_kafka import Consumer, Message, TopicPartition

from bench.harness.topics import PARTITIONS, consumer_settings

WAIT_S = 0.1
MANY = 1_000
Received = tuple[float, bytes]
"""The time, in seconds of the epoch, and the value."""


def receive(boot: str, topic: str, stop: Flag) -> list[Received]:
    """Receives all records from the first on, until the flag is set."""
    gc.disable()  # a collection would be a pause of the receiver, and count as the job's
    consumer, received = Consumer(consumer_settings(boot)), list[Received]()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    while not stop.is_set():
        # poll returns at the first message; consume(MANY, WAIT_S) would wait for that many, or for all of the time.
        first = consumer.poll(WAIT_S)
        _note(received, [first] if first else [])
        while more := consumer.consume(MANY, 0):
            _note(received, more)
    consumer.close()
    return received


def _note(received: list[Received], messages: list[Message]) -> None:
    now = time.time()
    received.extend((now, message.value() or b"") for message in messages if not message.error())
