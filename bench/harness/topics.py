"""The topics of a run: made anew, counted, and read back whole."""

import time
from collections.abc import Iterator, Mapping
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 2
INPUTS = ("events", "feedback")
OUTPUTS = ("snapshots",)
CONFIGS = {
    "snapshots": {"message.timestamp.type": "LogAppendTime"},
    "changes": {"message.timestamp.type": "LogAppendTime"},
    "limits": {"cleanup.policy": "compact"},
}
"""By a name without its prefix. The broker stamps snapshots and alerts with its own clock, whatever a job puts in the
record."""
NO_CONFIGS: Mapping[str, dict[str, str]] = {}
CHANGELOG = "-changelog"
"""How the topics are called in which Kafka Streams keeps its states."""
ANSWER_S = 30
PAUSE_S = 0.1
MANY = 20_000


def renew(boot: str, names: tuple[str, ...], configs: Mapping[str, dict[str, str]] = NO_CONFIGS) -> None:
    """Make these topics, empty, with these settings or those of CONFIGS.

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
    settings = {name: configs.get(name) or CONFIGS.get(name.rpartition(".")[2], {}) for name in names}
    new = [NewTopic(name, PARTITIONS, 1, config=config) for name, config in settings.items()]
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
        return sum(self._end(one) for one in self._partitions)

    def _end(self, partition: TopicPartition) -> int:
        found = self._consumer.get_watermark_offsets(partition, timeout=ANSWER_S, cached=False)
        if found is None:
            raise TimeoutError(f"the broker does not report the end of {partition.topic}")
        return int(found[1])


def records(boot: str, topic: str) -> Iterator[tuple[int, bytes]]:
    """Each record's time, in milliseconds of the epoch, and value."""
    consumer = _consumer(boot)
    try:
        end_offsets = {
            one.partition: consumer.get_watermark_offsets(one, timeout=ANSWER_S)[1] for one in _partitions(topic)
        }
        consumer.assign([TopicPartition(topic, partition, 0) for partition in end_offsets])
        left = {partition for partition, end in end_offsets.items() if end}
        while left:
            for message in consumer.consume(MANY, 1.0):
                if message.error():
                    continue
                yield message.timestamp()[1], message.value() or b""
                if (message.offset() or 0) + 1 >= end_offsets[message.partition() or 0]:
                    left.discard(message.partition() or 0)
    finally:
        consumer.close()


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
