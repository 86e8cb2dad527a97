"""Samples of a running worker."""

import time
from contextlib import ExitStack
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from bench.harness.process import Group
from bench.harness.topics import ANSWER_S, PARTITIONS, Counter, consumer_settings


class Sample(NamedTuple):
    """One measurement of a worker."""

    at: float
    """In seconds of the epoch."""
    cpu_s: float
    rss_mb: float
    answers: int
    committed: int
    """How many snapshots are committed."""


class Sampler:
    """Measures a worker's process, its answers and its group. A context manager."""

    def __init__(self, boot: str, group: str) -> None:
        self._stack = ExitStack()
        self._group = group
        self._consumer = Consumer(consumer_settings(boot) | {"group.id": group})
        self._admin = AdminClient({"bootstrap.servers": boot, "log_level": 3})
        self._feedback = Counter(boot, "feedback")
        self._snapshots = [TopicPartition("snapshots", partition) for partition in range(PARTITIONS)]

    def __enter__(self) -> Self:
        self._stack.callback(self._consumer.close)
        self._stack.enter_context(self._feedback)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def sample(self, process: Group) -> Sample:
        """Return a sample now."""
        return Sample(time.time(), process.cpu_s(), process.rss_mb(), self._feedback.count(), self.committed())

    def committed(self) -> int:
        """How many snapshots the group has committed."""
        found = self._consumer.committed(self._snapshots, ANSWER_S)
        return sum(max(0, one.offset) for one in found)

    def members(self) -> frozenset[str]:
        """Return the ids of the group's members. They change when a member was removed."""
        described = self._admin.describe_consumer_groups([self._group], request_timeout=ANSWER_S)
        return frozenset(member.member_id for member in described[self._group].result().members)
