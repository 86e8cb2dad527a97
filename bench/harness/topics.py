"""The topics of a run: made anew, counted, followed, and read back whole."""

import gc
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event as Flag
from typing import Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 2
EVENTS, FEEDBACK, SNAPSHOTS = "events", "feedback", "snapshots"
CONFIGS = {
    "snapshots": {"message.timestamp.type": "LogAppendTime"},
    "changes": {"message.timestamp.type": "LogAppendTime"},
    "limits": {"cleanup.policy": "compact"},
}
"""By a name without its prefix. The broker stamps snapshots and alerts with its own clock, whatever a job puts in the
record."""
CHANGELOG = "-changelog"
"""How the topics are called in which Kafka Streams keeps its states."""
ANSWER_S = 30
PAUSE_S = 0.1
WAIT_S = 0.1
MANY = 20_000
Received = tuple[float, bytes]
"""The time of a record, in seconds of the epoch, and its value."""


def renew(boot: str, *names: str) -> None:
    """Make these topics, empty.

    Those of this name that were there are gone, and those that a job made for itself.
    """
    admin = AdminClient({"bootstrap.servers": boot, "log_level": 3})
    there = admin.list_topics(timeout=ANSWER_S).topics
    old = [name for name in there if name in names or name.endswith(CHANGELOG)]
    if old:
        for deleted in admin.delete_topics(old).values():
            deleted.result(ANSWER_S)
        while any(name in admin.list_topics(timeout=ANSWER_S).topics for name in old):
            time.sleep(PAUSE_S)
    new = [NewTopic(name, PARTITIONS, 1, config=CONFIGS.get(name.rpartition(".")[2], {})) for name in names]
    for created in admin.create_topics(new).values():
        created.result(ANSWER_S)
    for name in names:
        _await_leaders(boot, name)


class Counter:
    """Counts the records of a topic. A context manager."""

    def __init__(self, boot: str, topic: str) -> None:
        self._consumer = _consumer(boot)
        self._partitions = _partitions(topic)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def count(self) -> int:
        """Return how many there are now."""
        return sum(self._end(partition) for partition in self._partitions)

    def _end(self, partition: TopicPartition) -> int:
        offsets = self._consumer.get_watermark_offsets(partition, timeout=ANSWER_S, cached=False)
        if offsets is None:
            raise TimeoutError(f"the broker does not report the end of {partition.topic}")
        return int(offsets[1])


class Commits:
    """Counts the records of a topic that a consumer group has committed. A context manager."""

    def __init__(self, boot: str, group: str, topic: str) -> None:
        self._consumer = Consumer(consumer_settings(boot) | {"group.id": group})
        self._partitions = _partitions(topic)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def count(self) -> int:
        """Return how many there are now."""
        return sum(max(0, position.offset) for position in self._consumer.committed(self._partitions, ANSWER_S))


def records(boot: str, topic: str) -> Iterator[Received]:
    """All records that the topic has now."""
    consumer = _consumer(boot)
    try:
        end_offsets = {
            each.partition: consumer.get_watermark_offsets(each, timeout=ANSWER_S)[1] for each in _partitions(topic)
        }
        consumer.assign([TopicPartition(topic, partition, 0) for partition in end_offsets])
        left = {partition for partition, end in end_offsets.items() if end}
        while left:
            for message in consumer.consume(MANY, 1.0):
                if message.error():
                    continue
                yield message.timestamp()[1] / 1000, message.value() or b""
                if (message.offset() or 0) + 1 >= end_offsets[message.partition() or 0]:
                    left.discard(message.partition() or 0)
    finally:
        consumer.close()


def receive(boot: str, topic: str, stop: Flag) -> list[Received]:
    """Receive all records from the first on, until the flag is set; gives when each of them came."""
    gc.disable()  # a collection would be a pause of the receiver, and count as the job's
    consumer, received = _consumer(boot), list[Received]()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    while not stop.is_set():
        # poll returns at the first message; consume(MANY, WAIT_S) would wait for that many, or for all of the time.
        first = consumer.poll(WAIT_S)
        _note(received, [] if first is None else [first])
        while more := consumer.consume(1_000, 0):
            _note(received, more)
    consumer.close()
    return received


def _note(received: list[Received], messages: list[Message]) -> None:
    now = time.time()
    received.extend((now, message.value() or b"") for message in messages if not message.error())


def consumer_settings(boot: str) -> dict[str, str | bool | int]:
    """The settings of a consumer that joins no group and commits nothing."""
    return {"bootstrap.servers": boot, "group.id": "bench", "enable.auto.commit": False}


def _await_leaders(boot: str, topic: str) -> None:
    """A topic is made before its partitions have leaders: return when these answer."""
    deadline = time.monotonic() + ANSWER_S
    with Counter(boot, topic) as counter:
        while True:
            try:
                counter.count()
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_S)
            else:
                return


def _consumer(boot: str) -> Consumer:
    return Consumer(consumer_settings(boot))


def _partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
